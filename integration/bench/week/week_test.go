package main

import (
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func starts(outcomes []outcome) []float64 {
	var all []float64
	for _, o := range outcomes {
		all = append(all, o.start)
	}
	return all
}

func same(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-9 {
			return false
		}
	}
	return len(a) == len(b)
}

func plain(arrival, run float64, gpus int) job {
	return job{arrival: arrival, run: run, declared: run, pods: 1, gpus: gpus}
}

func TestEasyByHand(t *testing.T) {
	// 4 GPUs. The second job needs all of them at 10. The third is over by then, the fourth is not, the fifth waits
	// for the second's end.
	jobs := []job{plain(0, 10, 3), plain(1, 5, 4), plain(2, 8, 1), plain(3, 8, 1), plain(4, 100, 1)}
	outcomes, used := playEasy(jobs, 1, 4, false, 1000)
	if want := []float64{0, 10, 2, 15, 15}; !same(starts(outcomes), want) {
		t.Errorf("starts %v, want %v", starts(outcomes), want)
	}
	if want := 30 + 20 + 8 + 8 + 100.0; math.Abs(used-want) > 1e-9 {
		t.Errorf("used %v, want %v", used, want)
	}
	// What the first waiting job leaves may be used beyond its start.
	jobs = []job{plain(0, 10, 3), plain(1, 5, 3), plain(2, 100, 1)}
	if outcomes, _ = playEasy(jobs, 1, 4, false, 1000); !same(starts(outcomes), []float64{0, 10, 2}) {
		t.Errorf("starts %v", starts(outcomes))
	}
	// A higher priority goes first.
	jobs = []job{plain(0, 10, 4), plain(1, 5, 4), plain(2, 5, 4)}
	jobs[2].priority = 1
	if outcomes, _ = playEasy(jobs, 1, 4, false, 1000); !same(starts(outcomes), []float64{0, 15, 10}) {
		t.Errorf("starts %v", starts(outcomes))
	}
	// A pool has no nodes.
	jobs = []job{plain(0, 10, 1), plain(0, 10, 1), plain(1, 10, 2)}
	jobs[0].gpus, jobs[1].gpus = 3, 3
	if outcomes, _ = playEasy(jobs, 2, 4, false, 1000); !same(starts(outcomes), []float64{0, 0, 10}) {
		t.Errorf("nodes: starts %v", starts(outcomes))
	}
	if outcomes, _ = playEasy(jobs, 2, 4, true, 1000); !same(starts(outcomes), []float64{0, 0, 1}) {
		t.Errorf("pool: starts %v", starts(outcomes))
	}
}

// For random jobs: GPUs in use never exceed the total, all work is done, and the fluid bound holds.
func TestEasyOnRandomJobs(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		nodes, gpus := 1+random.Intn(4), 2+random.Intn(6)
		var jobs []job
		for range 60 {
			j := plain(float64(random.Intn(200)), float64(1+random.Intn(50)), 1+random.Intn(gpus))
			if random.Intn(3) == 0 {
				j.pods = 1 + random.Intn(nodes*(gpus/j.gpus))
			}
			j.priority = random.Intn(2) * random.Intn(2)
			j.declared = j.run * float64(1+random.Intn(2))
			jobs = append(jobs, j)
		}
		for _, pool := range []bool{false, true} {
			outcomes, used := playEasy(jobs, nodes, gpus, pool, 1e9)
			work := 0.0
			for i, j := range jobs {
				if outcomes[i].start < j.arrival {
					t.Fatalf("seed %d: job %d starts at %v and came at %v", seed, i, outcomes[i].start, j.arrival)
				}
				work += float64(j.pods*j.gpus) * j.run
				held := 0
				for k, other := range jobs {
					if outcomes[k].start <= outcomes[i].start && outcomes[k].start+other.run > outcomes[i].start {
						held += other.pods * other.gpus
					}
				}
				if held > nodes*gpus {
					t.Fatalf("seed %d: %d of %d GPUs at %v", seed, held, nodes*gpus, outcomes[i].start)
				}
			}
			if math.Abs(used-work) > 1e-6 {
				t.Fatalf("seed %d: used %v of %v", seed, used, work)
			}
			for _, until := range []float64{50, 150, 400} {
				_, part := playEasy(jobs, nodes, gpus, pool, until)
				if bound := fluidBound(jobs, nodes*gpus, until); part > bound+1e-6 {
					t.Fatalf("seed %d: %v GPU-seconds until %v, bound %v", seed, part, until, bound)
				}
			}
		}
	}
}

func TestFluidByHand(t *testing.T) {
	// 4 GPUs: two jobs request 4 x 10 each until 10; 20 remain after that.
	jobs := []job{plain(0, 10, 4), plain(0, 10, 4)}
	for until, want := range map[float64]float64{5: 20, 10: 40, 20: 80, 25: 80} {
		if got := fluidBound(jobs, 4, until); math.Abs(got-want) > 1e-9 {
			t.Errorf("until %v: %v, want %v", until, got, want)
		}
	}
	// No work is done before a job arrives, nor on more GPUs than it requests.
	jobs = []job{plain(10, 10, 2)}
	for until, want := range map[float64]float64{10: 0, 15: 10, 30: 20} {
		if got := fluidBound(jobs, 4, until); math.Abs(got-want) > 1e-9 {
			t.Errorf("until %v: %v, want %v", until, got, want)
		}
	}
}

func TestIntervals(t *testing.T) {
	mean, half := interval([]float64{1, 2, 3, 4})
	if mean != 2.5 || math.Abs(half-3.182*math.Sqrt(5.0/3/4)) > 1e-9 {
		t.Errorf("%v ± %v", mean, half)
	}
	if _, half = interval([]float64{7}); !math.IsNaN(half) {
		t.Errorf("a single value has the interval %v", half)
	}
	mean, p95, unstarted := queueFigures([]job{plain(0, 1, 1), plain(10, 1, 1), plain(200, 1, 1)}, []outcome{{5}, {-1}, {-1}}, 100)
	if mean != 47.5 || p95 != 90 || unstarted != 0.5 {
		t.Errorf("mean %v, p95 %v, unstarted %v", mean, p95, unstarted)
	}
}

func TestTracesAreRead(t *testing.T) {
	jobs, err := readJobs(strings.NewReader(`# made up
{"job":"serve-1","class":"inference","arrival":8.5,"run":60.2,"priority":1000,"gpus":2,"cpu":16,"memory":"128Gi","annotations":{"outboard/run-seconds":"61"}}

{"job":"train-1","class":"training-16","arrival":52.5,"run":158,"replicas":2,"gang":true,"gpus":8,"checkpointEvery":600.0}
`))
	want := []job{{"serve-1", "inference", 8.5, 60.2, 61, 1, 2, 1000}, {"train-1", "training-16", 52.5, 158, 158, 2, 8, 0}}
	if err != nil || len(jobs) != 2 || jobs[0] != want[0] || jobs[1] != want[1] {
		t.Errorf("%v, %v", jobs, err)
	}
	for _, bad := range []string{`{"job":"a","run":1}`, `{"job":"a","run":1,"gpus":1,"replicas":2}`, `{"shape":"a"}`, `{`} {
		if _, err := readJobs(strings.NewReader(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// A small day through everything; the table then has a line for each scheduler.
func TestAFewHours(t *testing.T) {
	if os.Getenv("OUTBOARD_BIN") == "" {
		t.Skip("OUTBOARD_BIN is not set")
	}
	o := options{outboard: filepath.Join(os.Getenv("OUTBOARD_BIN"), "outboard"), example: "../../../deploy/examples/ai-scheduler.yaml",
		nodes: 4, gpus: 8, hours: 6, declared: 1, mostWaiting: 1000, jobs: 2, seeds: 2, folder: t.TempDir()}
	if err := o.writeConfigs(); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, name := range schedulers {
		wanted[name] = true
	}
	kept, err := openLedger(filepath.Join(o.folder, "results"), o.setting())
	if err != nil {
		t.Fatal(err)
	}
	results, err := o.measure(0.8, wanted, kept)
	if err != nil {
		t.Fatal(err)
	}
	bound := map[int]float64{}
	for _, r := range results {
		if r.Scheduler == "fluid" {
			bound[r.Seed] = r.Utilisation
		}
	}
	for _, r := range results {
		if r.Utilisation <= 0 || r.Useful > bound[r.Seed]+1e-6 {
			t.Errorf("%s, seed %d: %+v, bound %v", r.Scheduler, r.Seed, r.figures, bound[r.Seed])
		}
	}
	text := table(0.8, o.hours, results)
	for _, title := range titles {
		if !strings.Contains(text, title) {
			t.Errorf("missing line for %s in\n%s", title, text)
		}
	}
	t.Log(text)
	// Existing results are not measured again.
	o.outboard = "/nowhere"
	again, err := o.measure(0.8, wanted, kept)
	if err != nil || len(again) != len(results) || table(0.8, o.hours, again) != text {
		t.Errorf("%d results, again %d: %v\n%s", len(results), len(again), err, table(0.8, o.hours, again))
	}
}
