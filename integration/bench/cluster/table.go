package main

import (
	"fmt"
	"slices"
	"strings"
)

// column is one figure of a result.
type column struct {
	key, title string
	value      func(*Result) float64
	format     func(float64) string
}

func digits(n int) func(float64) string {
	return func(value float64) string { return fmt.Sprintf("%.*f", n, value) }
}

var columns = []column{
	{"podsPerSecond", "pods/s", func(r *Result) float64 { return r.PodsPerSecond }, digits(0)},
	{"schedulingThroughput", "pods/s scheduling", func(r *Result) float64 { return r.SchedulingThroughput }, digits(0)},
	{"cpuMillisPerPod", "CPU ms/pod", func(r *Result) float64 { return r.CPUMillisPerPod }, digits(3)},
	{"apiServerCpuMillisPerPod", "API server's CPU ms/pod", func(r *Result) float64 { return r.APIServerCPUMillisPerPod }, digits(3)},
	{"etcdCpuMillisPerPod", "etcd's CPU ms/pod", func(r *Result) float64 { return r.EtcdCPUMillisPerPod }, digits(3)},
	{"rssMiB", "RSS MiB", func(r *Result) float64 { return r.RSSMiB }, digits(0)},
	{"algorithmMeanMillis", "algorithm ms mean", func(r *Result) float64 { return r.AlgorithmMean }, digits(3)},
	{"algorithmP50Millis", "p50", func(r *Result) float64 { return r.AlgorithmP50 }, digits(3)},
	{"algorithmP99Millis", "p99", func(r *Result) float64 { return r.AlgorithmP99 }, digits(3)},
	{"createToBoundP50Millis", "create→bound ms p50", func(r *Result) float64 { return r.CreateToBoundP50 }, digits(1)},
	{"createToBoundP99Millis", "p99", func(r *Result) float64 { return r.CreateToBoundP99 }, digits(1)},
}

func median(results []*Result, value func(*Result) float64) float64 {
	values := make([]float64, 0, len(results))
	for _, result := range results {
		values = append(values, value(result))
	}
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// table shows medians, one row for each figure and one column for each contender, and the ratios to the first
// contender.
func table(names []string, all map[string][]*Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| median of %d runs ", len(all[names[0]]))
	for _, name := range names {
		fmt.Fprintf(&b, "| %s ", name)
	}
	for _, name := range names[1:] {
		fmt.Fprintf(&b, "| %s : %s ", name, names[0])
	}
	fmt.Fprintf(&b, "|\n|---%s|\n", strings.Repeat("|---:", 2*len(names)-1))
	for _, column := range columns {
		fmt.Fprintf(&b, "| %s ", column.title)
		first := median(all[names[0]], column.value)
		for _, name := range names {
			fmt.Fprintf(&b, "| %s ", orDash(median(all[name], column.value), column.format))
		}
		for _, name := range names[1:] {
			ratio := 0.0
			if first != 0 {
				ratio = median(all[name], column.value) / first
			}
			fmt.Fprintf(&b, "| %s ", orDash(ratio, digits(2)))
		}
		fmt.Fprintln(&b, "|")
	}
	return b.String()
}

// verdict summarizes the most important figures, if there is a second contender to compare with.
func verdict(all map[string][]*Result) string {
	podsPerSecond := func(r *Result) float64 { return r.PodsPerSecond }
	cpu := func(r *Result) float64 { return r.CPUMillisPerPod }
	algorithm := func(r *Result) float64 { return r.AlgorithmP50 }
	ours, theirs, ceiling := all["outboard"], all["kube-scheduler"], all["bind-at-once"]
	var lines []string
	if len(ours) > 0 && len(theirs) > 0 {
		lines = append(lines, fmt.Sprintf("Outboard: %.2f times kube-scheduler's pods/s, at %.2f of its CPU per pod; "+
			"algorithm p50 %.3f ms, kube-scheduler's %.3f ms.", median(ours, podsPerSecond)/median(theirs, podsPerSecond),
			median(ours, cpu)/median(theirs, cpu), median(ours, algorithm), median(theirs, algorithm)))
	}
	for name, results := range map[string][]*Result{"Outboard": ours, "kube-scheduler": theirs} {
		if len(results) > 0 && len(ceiling) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %.0f %% of the pods/s of binding at once.", name,
				100*median(results, podsPerSecond)/median(ceiling, podsPerSecond)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func orDash(value float64, format func(float64) string) string {
	if value == 0 {
		return "–"
	}
	return format(value)
}

// summary has one row for each workload, for the README.
func summary(shapes []string, works map[string]workload, all map[string]map[string][]*Result) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| workload | pods, after | kube-scheduler pods/s | Outboard pods/s | ratio | bind at once pods/s | Outboard of it | CPU ms a pod, ratio | RSS MiB, both |")
	fmt.Fprintln(&b, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, shape := range shapes {
		results, work := all[shape], works[shape]
		theirs, ours, ceiling := results["kube-scheduler"], results["outboard"], results["bind-at-once"]
		rate := func(r *Result) float64 { return r.PodsPerSecond }
		cpu := func(r *Result) float64 { return r.CPUMillisPerPod }
		rss := func(r *Result) float64 { return r.RSSMiB }
		fmt.Fprintf(&b, "| `%s`: %s | %d, %d | %s | %s | %s | %s | %s | %s : %s = %s | %s : %s |\n", shape, work.about, work.measured, work.initial,
			orDash(median(theirs, rate), digits(0)), orDash(median(ours, rate), digits(0)), orDash(ratioOf(ours, theirs, rate), digits(2)),
			orDash(median(ceiling, rate), digits(0)), orDash(100*ratioOf(ours, ceiling, rate), percent),
			orDash(median(ours, cpu), digits(2)), orDash(median(theirs, cpu), digits(2)), orDash(ratioOf(ours, theirs, cpu), digits(2)),
			orDash(median(ours, rss), digits(0)), orDash(median(theirs, rss), digits(0)))
	}
	return b.String()
}

func percent(value float64) string { return fmt.Sprintf("%.0f %%", value) }

// ratioOf is 0 without a value to compare with.
func ratioOf(of, to []*Result, value func(*Result) float64) float64 {
	if below := median(to, value); below != 0 {
		return median(of, value) / below
	}
	return 0
}

// rowKey returns the workload of a row, or "" for other lines.
func rowKey(row string) string {
	rest, is := strings.CutPrefix(row, "| `")
	name, _, _ := strings.Cut(rest, "`")
	if !is {
		return ""
	}
	return name
}

const (
	tableBegins = "<!-- ./dev bench cluster writes this table"
	tableEnds   = "<!-- end of the table -->"
)

// updateTable replaces the table between the two marks of a document; text after the first mark on its line stays.
// Rows of the old table stay in place if the new table does not have their workload.
func updateTable(document, table string) (string, error) {
	begin := strings.Index(document, tableBegins)
	end := strings.Index(document, tableEnds)
	if begin < 0 || end < begin {
		return "", fmt.Errorf("missing place for the table: a line that begins with %q, and %q", tableBegins, tableEnds)
	}
	line := begin + strings.Index(document[begin:], "\n") + 1
	newRows := strings.SplitAfter(table, "\n")
	rows := newRows[:2:2]
	taken := map[string]bool{"": true}
	for _, old := range strings.SplitAfter(document[line:end], "\n") {
		key := rowKey(old)
		if taken[key] {
			continue
		}
		taken[key] = true
		if i := slices.IndexFunc(newRows, func(row string) bool { return rowKey(row) == key }); i >= 0 {
			old = newRows[i]
		}
		rows = append(rows, old)
	}
	for _, row := range newRows {
		if !taken[rowKey(row)] {
			rows = append(rows, row)
		}
	}
	return document[:line] + strings.Join(rows, "") + document[end:], nil
}
