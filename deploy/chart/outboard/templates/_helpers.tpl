{{- define "outboard.labels" -}}
app.kubernetes.io/name: outboard
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "outboard.shimSubjects" -}}
- {kind: ServiceAccount, name: outboard-shim, namespace: {{ .Release.Namespace }}}
{{- end }}

{{- define "outboard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "outboard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
