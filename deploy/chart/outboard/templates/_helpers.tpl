{{- define "outboard.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* The first part of all names. At most 40 characters, so that the longest name with a suffix has at most 63. */}}
{{- define "outboard.fullname" -}}
{{- $name := include "outboard.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* (list $ "shim"): the name of an object without a namespace. A namespace has no dots, so two releases in two
       namespaces never share a name. */}}
{{- define "outboard.clusterName" -}}
{{ printf "%s-%s.%s" (include "outboard.fullname" (index . 0)) (index . 1) (index . 0).Release.Namespace }}
{{- end }}

{{- /* (list $ "shim"): the labels by which an object is found. They must not change in an upgrade. */}}
{{- define "outboard.selector" -}}
app.kubernetes.io/name: {{ include "outboard.name" (index . 0) }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* The pods of the hosts in mode mtls, as of kubectl's --selector. */}}
{{- define "outboard.hostSelector" -}}
app.kubernetes.io/name={{ include "outboard.name" . }},app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component=host
{{- end }}

{{- define "outboard.labels" -}}
{{ merge (include "outboard.selector" . | fromYaml) (index . 0).Values.commonLabels | toYaml }}
{{- end }}

{{- define "outboard.shimAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (printf "%s-shim" (include "outboard.fullname" .)) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "outboard.hostAccount" -}}
{{- if .Values.host.serviceAccount.create -}}
{{ .Values.host.serviceAccount.name | default (printf "%s-host" (include "outboard.fullname" .)) }}
{{- else -}}
{{ .Values.host.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "outboard.shimSubjects" -}}
- {kind: ServiceAccount, name: {{ include "outboard.shimAccount" . }}, namespace: {{ .Release.Namespace }}}
{{- end }}

{{- /* (list $ "shim" RULES): a ClusterRole with these rules for the shim's account. */}}
{{- define "outboard.shimRole" -}}
{{- $root := index . 0 -}}
{{- $name := include "outboard.clusterName" (list $root (index . 1)) -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- include "outboard.labels" (list $root "shim") | nindent 4 }}
rules:
{{ index . 2 | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "outboard.labels" (list $root "shim") | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $name }}}
subjects:
{{ include "outboard.shimSubjects" $root }}
{{ end }}

{{- define "outboard.leaseName" -}}
{{ .Values.leaseName | default (printf "%s-scheduler" (include "outboard.fullname" .)) }}
{{- end }}

{{- define "outboard.configMap" -}}
{{ .Values.existingConfigMap | default (printf "%s-config" (include "outboard.fullname" .)) }}
{{- end }}

{{- /* (list $ PORT): an address to listen on. */}}
{{- define "outboard.listen" -}}
{{- $address := (index . 0).Values.bindAddress -}}
{{ if contains ":" $address }}[{{ $address }}]{{ else }}{{ $address }}{{ end }}:{{ index . 1 }}
{{- end }}

{{- define "outboard.config" -}}
{{ tpl (.Values.config | default (.Files.Get (printf "files/config-%s.yaml" .Values.mode))) . }}
{{- end }}

{{- /* A hash of the configuration's fields that wait for a restart: `helm upgrade` restarts the shims if one of them
       changes, and only then. docs/configuration.md has the same fields. */}}
{{- define "outboard.restartFields" -}}
{{- $fields := dict }}
{{- range regexSplit "(?m)^---\\s*$" (include "outboard.config" .) -1 }}
{{- $document := fromYaml . }}
{{- range list "leaderElection" "clientConnection" "podInitialBackoffSeconds" "podMaxBackoffSeconds" "servingAddress"
    "secureServing" "extender" "explainMemoryMiB" "allowedEnvironmentVariables" "featureGates" }}
{{- if hasKey $document . }}{{- $_ := set $fields . (get $document .) }}{{- end }}
{{- end }}
{{- end }}
{{- $fields | toJson | sha256sum | trunc 16 }}
{{- end }}

{{- /* The first profile, as pods name it. */}}
{{- define "outboard.schedulerName" -}}
{{- if .Values.config -}}
{{- $scheduler := regexSplit "(?m)^---\\s*$" (include "outboard.config" .) -1 | first | fromYaml -}}
{{ (first ($scheduler.profiles | default (list dict))).schedulerName | default "default-scheduler" }}
{{- else -}}
{{ .Values.schedulerName }}
{{- end }}
{{- end }}

{{- define "outboard.priorityClass" -}}
{{- if .Values.priorityClass.create -}}
{{ .Values.priorityClass.name | default (printf "%s.%s" (include "outboard.fullname" .) .Release.Namespace) }}
{{- else -}}
{{ .Values.priorityClass.name }}
{{- end }}
{{- end }}

{{- define "outboard.hostSecret" -}}
{{ .Values.tls.hostSecret | default (printf "%s-host-tls" (include "outboard.fullname" .)) }}
{{- end }}

{{- define "outboard.shimSecret" -}}
{{ .Values.tls.shimSecret | default (printf "%s-shim-tls" (include "outboard.fullname" .)) }}
{{- end }}

{{- define "outboard.extenderSecret" -}}
{{ .Values.extender.tlsSecret | default (printf "%s-extender-tls" (include "outboard.fullname" .)) }}
{{- end }}

{{- define "outboard.webhookSecret" -}}
{{ .Values.bindingWebhook.tlsSecret | default (printf "%s-webhook-tls" (include "outboard.fullname" .)) }}
{{- end }}

{{- /* (list $ "shim"): image and imagePullPolicy of a container. */}}
{{- define "outboard.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- $registry := $image.registry | default $root.Values.image.registry -}}
{{- $tag := $image.tag | default $root.Values.image.tag | default $root.Chart.AppVersion -}}
image: {{ with $registry }}{{ . }}/{{ end }}{{ $image.repository }}:{{ $tag }}{{ with $image.digest }}@{{ . }}{{ end }}
imagePullPolicy: {{ $image.pullPolicy | default $root.Values.image.pullPolicy }}
{{- end }}

{{- define "outboard.serviceFamilies" -}}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /* (list $ "shim"): fields of the pods of .Values.shim or .Values.host that are the same in both. */}}
{{- define "outboard.scheduling" -}}
{{- $root := index . 0 -}}
{{- $pod := index $root.Values (index . 1) -}}
{{- with include "outboard.priorityClass" $root }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /* Further arguments of the plugin host, and its environment. */}}
{{- define "outboard.hostOptions" -}}
{{- with .Values.host.logLevel }}
- --v={{ . }}
{{- end }}
{{- with .Values.host.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- with .Values.host.extraEnv }}
env: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /* (list $ "shim"): the labels of pods. Those by which they are found cannot be replaced. */}}
{{- define "outboard.podLabels" -}}
{{- $root := index . 0 -}}
{{- $pod := index $root.Values (index . 1) -}}
{{ merge (include "outboard.selector" . | fromYaml) $pod.podLabels $root.Values.commonLabels | toYaml }}
{{- end }}

{{- /* (list $ "shim"): those of the size, changed by `resources`. */}}
{{- define "outboard.resources" -}}
{{- $root := index . 0 -}}
{{- $size := index ($root.Files.Get "files/sizes.yaml" | fromYaml) $root.Values.size -}}
{{- mergeOverwrite (index $size (index . 1)) (index $root.Values.resources (index . 1)) | toYaml }}
{{- end }}

{{- /* (list $ "shim"): constraints without a labelSelector are about these pods. */}}
{{- define "outboard.spread" -}}
{{- $root := index . 0 -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "outboard.selector" . | fromYaml)) -}}
{{- range (index $root.Values (index . 1)).topologySpreadConstraints }}
- {{- merge (deepCopy .) $selector | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{- define "outboard.apiServerEgress" -}}
- ports:
  {{- range .Values.networkPolicy.apiServerPorts }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}
