package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ExtendedResourceClaim is the name of the claim for a pod's extended resources, whose real name is generated.
const ExtendedResourceClaim = "<extended-resources>"

// ClaimsOfGroup is the resource of claims in effects.
const ClaimsOfGroup = "resourceclaims.v1.resource.k8s.io"

// ClaimOutcome is the effect of a pod's attempt on a claim.
type ClaimOutcome struct {
	Name string
	// Allocation is the claim's, in the form of CanonicalAllocation; empty if it has none, or none was written.
	Allocation string
	// Reserved: it is reserved for the pod.
	Reserved bool
}

func (c ClaimOutcome) String() string {
	return fmt.Sprintf("%s: reserved %v, allocation %s", c.Name, c.Reserved, c.Allocation)
}

func sortClaims(claims []ClaimOutcome) {
	slices.SortFunc(claims, func(a, b ClaimOutcome) int { return strings.Compare(a.Name, b.Name) })
}

// CanonicalAllocation returns an allocation without random identifiers (of shares) and times, with each amount in one
// notation.
func CanonicalAllocation(allocation *resourcev1.AllocationResult) (string, error) {
	if allocation == nil {
		return "", nil
	}
	canonical := allocation.DeepCopy()
	canonical.AllocationTimestamp = nil
	for i := range canonical.Devices.Results {
		result := &canonical.Devices.Results[i]
		if result.ShareID != nil {
			*result.ShareID = "shared"
		}
		for name, quantity := range result.ConsumedCapacity {
			// The same amount has several notations, and keeps the original one.
			result.ConsumedCapacity[name] = resource.MustParse(quantity.AsDec().String())
		}
	}
	data, err := json.Marshal(canonical)
	return string(data), err
}

// Effect is a write for a pod, as `outboard simulate -o json` lists it: exactly one of the three.
type Effect struct {
	Put    *EffectTarget `json:"put,omitempty"`
	Patch  *EffectTarget `json:"patch,omitempty"`
	Delete *EffectTarget `json:"delete,omitempty"`
}

// EffectTarget is the object of an effect; Body is the written object, or the patch.
type EffectTarget struct {
	Resource  string          `json:"resource"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Status    bool            `json:"status"`
	Body      json.RawMessage `json:"body,omitempty"`
}

// claimsOf reads the changes of claims from effects. The output does not contain the pod's UID; an added reservation
// can only be for the pod itself.
func claimsOf(effects []Effect) ([]ClaimOutcome, error) {
	outcomes := map[string]*ClaimOutcome{}
	at := func(target *EffectTarget) *ClaimOutcome {
		name := target.Namespace + "/" + target.Name
		if strings.Contains(target.Name, "-extended-resources-") {
			name = ExtendedResourceClaim
		}
		if outcomes[name] == nil {
			outcomes[name] = &ClaimOutcome{Name: name}
		}
		return outcomes[name]
	}
	for _, effect := range effects {
		switch {
		case effect.Patch != nil && effect.Patch.Resource == ClaimsOfGroup:
			var claim struct {
				Status struct {
					Allocation  *resourcev1.AllocationResult `json:"allocation"`
					ReservedFor []struct {
						Patch string `json:"$patch"`
					} `json:"reservedFor"`
				} `json:"status"`
			}
			if err := json.Unmarshal(effect.Patch.Body, &claim); err != nil {
				return nil, fmt.Errorf("patch of claim %s: %w", effect.Patch.Name, err)
			}
			outcome := at(effect.Patch)
			if claim.Status.Allocation != nil {
				var err error
				if outcome.Allocation, err = CanonicalAllocation(claim.Status.Allocation); err != nil {
					return nil, err
				}
			}
			for _, consumer := range claim.Status.ReservedFor {
				outcome.Reserved = outcome.Reserved || consumer.Patch == ""
			}
		case effect.Put != nil && effect.Put.Resource == ClaimsOfGroup:
			at(effect.Put)
		case effect.Delete != nil && effect.Delete.Resource == ClaimsOfGroup:
			*at(effect.Delete) = ClaimOutcome{Name: at(effect.Delete).Name}
		}
	}
	var list []ClaimOutcome
	for _, outcome := range outcomes {
		list = append(list, *outcome)
	}
	sortClaims(list)
	return list, nil
}

// effectsOf is the inverse: effects that lead to these outcomes of claims.
func effectsOf(claims []ClaimOutcome) []Effect {
	effects := []Effect{}
	for _, claim := range claims {
		target := &EffectTarget{Resource: ClaimsOfGroup, Status: true}
		target.Namespace, target.Name, _ = strings.Cut(claim.Name, "/")
		if claim.Name == ExtendedResourceClaim {
			target.Namespace, target.Name = "", "-extended-resources-"
		}
		status := map[string]any{}
		if claim.Allocation != "" {
			status["allocation"] = json.RawMessage(claim.Allocation)
		}
		if claim.Reserved {
			status["reservedFor"] = []any{map[string]any{"resource": "pods"}}
		}
		target.Body, _ = json.Marshal(map[string]any{"status": status})
		effects = append(effects, Effect{Patch: target})
	}
	return effects
}
