package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Features are the rules that a case may exercise beyond the common ones (resources, taints, node affinity, ports,
// images).
type Features uint

// The features, each with the plugins that it needs.
const (
	Spread Features = 1 << iota
	Affinity
	Volumes
	Preemption
	// Declared are features that nodes declare and pods need.
	Declared
	// Untouched leaves the plugin for claims enabled, although no claims exist: with All, profiles are
	// kube-scheduler's own, also unmodified ones. The plugin changes messages, and keeps DefaultPreemption from
	// running if PreFilter ends before it.
	Untouched
	// All are all rules that can be exercised.
	All  = Untouched<<1 - 1
	None = Features(0)
	// Claims are device claims. They are not part of All: Outboard needs a second host for them, see
	// integration/simulator/claims_host.sh.
	Claims = Untouched << 1

	// Features before `end` can be the subject of pods.
	end = Untouched
)

var featureNames = []string{"spread", "affinity", "volumes", "preemption", "features", "untouched", "claims"}

// pluginsOf are the default plugins of a feature; without the feature profiles disable them.
var pluginsOf = map[Features][]string{
	Spread:     {"PodTopologySpread"},
	Affinity:   {"InterPodAffinity"},
	Volumes:    {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"},
	Preemption: {"DefaultPreemption"},
	Declared:   {"NodeDeclaredFeatures"},
}

// ParseFeatures reads a comma-separated list: names of features, "base" for none, and "all".
func ParseFeatures(text string) (Features, error) {
	features := None
	for _, word := range strings.Split(text, ",") {
		switch index := slices.Index(featureNames, word); {
		case word == "all":
			features |= All
		case word == "base":
		case index < 0:
			return 0, fmt.Errorf("unknown feature %q; use base, all, %s", word, strings.Join(featureNames, ", "))
		default:
			features |= 1 << index
		}
	}
	return features, nil
}

func (f Features) String() string {
	words := []string{"base"}
	for i, word := range featureNames {
		if f&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ",")
}

// disabled returns the default plugins that need features which the case lacks.
func (f Features) disabled() []string {
	var list []string
	if f&(Untouched|Claims) == 0 {
		list = append(list, "DynamicResources")
	}
	for feature := Spread; feature < end; feature <<= 1 {
		if f&feature == 0 {
			list = append(list, pluginsOf[feature]...)
		}
	}
	return list
}

// emphasis selects the subject of most pods of a seed: one feature, none, or all at once. With Claims it is usually
// Claims.
func (f Features) emphasis(seed uint64) Features {
	if f&Claims != 0 {
		if f&All == None || seed%4 != 0 {
			return Claims
		}
		return (f &^ Claims).emphasis(seed / 4)
	}
	var list []Features
	for feature := Spread; feature < end; feature <<= 1 {
		if f&feature != 0 {
			list = append(list, feature)
		}
	}
	if len(list) < 2 {
		return f &^ Untouched
	}
	if f&Volumes != 0 {
		// Four plugins handle volumes.
		list = append(list, Volumes)
	}
	switch turn := int(seed % uint64(len(list)+2)); turn {
	case len(list):
		return None
	case len(list) + 1:
		return f &^ Untouched
	default:
		return list[turn]
	}
}

// rate returns a chance in percent: often if the feature is the seed's subject, seldom if it is only enabled, zero
// without it.
func (w *world) rate(feature Features, often, seldom float64) float64 {
	switch {
	case w.features&feature == 0:
		return 0
	case w.about&feature != 0:
		return often
	}
	return seldom
}

// when is true at that rate. Without the feature it draws no random number.
func (w *world) when(feature Features, often, seldom float64) bool {
	return w.features&feature != 0 && w.chance(w.rate(feature, often, seldom))
}

// noise returns a chance in percent for other properties: lower if a feature is the subject.
func (w *world) noise(usual, less float64) bool {
	if w.quiet() {
		return w.chance(less)
	}
	return w.chance(usual)
}

// quiet: other reasons must not reject a node before the feature's plugins run.
func (w *world) quiet() bool { return w.about != None }

// dense: the case is only about preemption, so that many pods of a small, full cluster preempt.
func (w *world) dense() bool { return w.features == Preemption }
