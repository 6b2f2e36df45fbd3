package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Features says which rules a case may exercise beyond those of every case (resources, taints, node affinity, ports, images).
type Features uint

// The features, each with the plugins that it needs.
const (
	Spread Features = 1 << iota
	Affinity
	Volumes
	Preemption
	// Declared are features that nodes declare and pods need.
	Declared
	// Untouched leaves the plugin for claims enabled, which has nothing to judge here: with All, profiles are kube-scheduler's own,
	// untouched ones among them. It has a say in messages, and keeps DefaultPreemption from running where PreFilter does not come
	// as far as to it.
	Untouched
	// All are all rules that can be exercised.
	All  = Untouched<<1 - 1
	None = Features(0)
	// Claims are for devices. They are not among All: Outboard needs a second host for them, see integration/simulator/claims_host.sh.
	Claims = Untouched << 1

	// Features below are what pods are about.
	end = Untouched
)

var featureNames = []string{"spread", "affinity", "volumes", "preemption", "features", "untouched", "claims"}

// pluginsOf are the default plugins that a feature needs; without it profiles disable them.
var pluginsOf = map[Features][]string{
	Spread:     {"PodTopologySpread"},
	Affinity:   {"InterPodAffinity"},
	Volumes:    {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"},
	Preemption: {"DefaultPreemption"},
	Declared:   {"NodeDeclaredFeatures"},
}

// ParseFeatures reads a list with commas: names of features, "base" for none, and "all".
func ParseFeatures(text string) (Features, error) {
	features := None
	for _, word := range strings.Split(text, ",") {
		switch index := slices.Index(featureNames, word); {
		case word == "all":
			features |= All
		case word == "base":
		case index < 0:
			return 0, fmt.Errorf("no feature %q; there are base, all and %s", word, strings.Join(featureNames, ", "))
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

// disabled lists the default plugins that a case without the missing features must do without.
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

// emphasis picks what most pods of a seed are about: one feature, nothing in particular, or all at once. With Claims it is them,
// as a rule.
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
		// Four plugins judge volumes.
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

// rate is a chance in percent: often where the seed is about the feature, seldom where it is merely there, never without it.
func (w *world) rate(feature Features, often, seldom float64) float64 {
	switch {
	case w.features&feature == 0:
		return 0
	case w.about&feature != 0:
		return often
	}
	return seldom
}

// when is true at that rate. Without the feature it takes nothing from the random stream.
func (w *world) when(feature Features, often, seldom float64) bool {
	return w.features&feature != 0 && w.chance(w.rate(feature, often, seldom))
}

// noise is a chance in percent of what is not the subject: as usual, or less of it where a feature is.
func (w *world) noise(usual, less float64) bool {
	if w.quiet() {
		return w.chance(less)
	}
	return w.chance(usual)
}

// quiet: a node must not be rejected for other reasons before the feature's plugins get to see it.
func (w *world) quiet() bool { return w.about != None }

// dense: the case is about preemption and nothing else, so that many pods of a small, full cluster preempt.
func (w *world) dense() bool { return w.features == Preemption }
