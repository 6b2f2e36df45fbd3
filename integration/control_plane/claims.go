package controlplane

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

//go:embed manifests/claims-access.yaml
var claimsAccess string

// ClaimControllers are the controllers of kube-controller-manager that device claims need: one creates claims from
// templates and removes deleted pods from them, the other deletes claims whose pod is gone.
var ClaimControllers = []string{"resourceclaim-controller", "garbage-collector-controller"}

// ErrNoClaimsHost reports that the host for claims has not been built.
var ErrNoClaimsHost = errors.New("outboard-claims-host is not built: run plugins/dynamic_resources/host/run.sh with BUILD_ONLY=1, or set OUTBOARD_CLAIMS_HOST")

// ClaimsHostProgram returns the program that serves device claims: $OUTBOARD_CLAIMS_HOST, or the result of its
// run.sh. Returns ErrNoClaimsHost if the file does not exist.
func ClaimsHostProgram() (string, error) {
	program := os.Getenv("OUTBOARD_CLAIMS_HOST")
	if program == "" {
		root, err := Repository()
		if err != nil {
			return "", err
		}
		program = filepath.Join(root, "build", "claims", "outboard-claims-host")
	}
	program, err := filepath.Abs(program)
	if err == nil && !isExecutable(program) {
		err = fmt.Errorf("%w (looked for %s)", ErrNoClaimsHost, program)
	}
	return program, err
}

// claimsResources are the resources that the shim lets the host for claims read and write.
var claimsResources = []any{
	map[string]any{"resource": "resourceclaims.v1.resource.k8s.io", "verbs": []any{"create", "delete", "patch", "patchStatus"}},
	map[string]any{"resource": "resourceslices.v1.resource.k8s.io"},
	map[string]any{"resource": "deviceclasses.v1.resource.k8s.io"},
}

// addClaims puts the host for claims before the other hosts, which serve a plugin of the same name, and grants the
// shim's user its rights.
func (o *Outboard) addClaims(ctx context.Context, shim map[string]any, hosts []any, user string) ([]any, error) {
	err := o.controlPlane.Apply(ctx, strings.ReplaceAll(claimsAccess, "outboard-scheduler", user))
	if err != nil && !apierrors.IsAlreadyExists(err) { // An earlier shim of this user has them.
		return nil, err
	}
	others, _ := shim["customResources"].([]any)
	shim["customResources"] = append(others, claimsResources...)
	return append([]any{map[string]any{"name": "claims", "address": "unix:" + o.claimsSocket()}}, hosts...), nil
}

func (o *Outboard) claimsSocket() string { return o.socket + ".claims" }

// StartClaimsHost starts or restarts the host for claims.
func (o *Outboard) StartClaimsHost() error {
	program, err := ClaimsHostProgram()
	if err != nil {
		return err
	}
	o.ClaimsHost, err = o.controlPlane.StartProcess("outboard-claims-host"+o.options.Name, program, "--listen", "unix:"+o.claimsSocket())
	return err
}
