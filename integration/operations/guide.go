// Package operations runs the commands of the operations guide (docs/operations) on a cluster.
package operations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Marks of blocks: which run of the guide executes them. The first two need only a control plane and nodes that KWOK
// plays; in the others Outboard's own pods answer, which needs kubelets.
const (
	Kustomize        = "operations"
	Helm             = "operations-helm"
	KustomizeCluster = "operations-cluster"
	HelmCluster      = "operations-helm-cluster"
)

// Block is a block of commands of a page.
type Block struct {
	Page     string // install.md
	Line     int    // of the ```sh
	Marks    []string
	Commands string
	Shown    string // the output that the page shows for it; may be empty
}

// Place is where a reader finds it.
func (b Block) Place() string { return fmt.Sprintf("docs/operations/%s:%d", b.Page, b.Line) }

// Runs returns whether it has one of the marks.
func (b Block) Runs(marks []string) bool {
	return slices.ContainsFunc(b.Marks, func(mark string) bool { return slices.Contains(marks, mark) })
}

var (
	linkedPage = regexp.MustCompile(`\]\(([a-z-]+\.md)\)`)
	testedBy   = regexp.MustCompile(`^<!-- tested by: ([a-z -]+) -->$`)
)

// Pages returns the names of the guide's pages, in the order of its table of contents.
func Pages(guide string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(guide, "README.md"))
	if err != nil {
		return nil, err
	}
	var pages []string
	for _, link := range linkedPage.FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(pages, link[1]) {
			pages = append(pages, link[1])
		}
	}
	if len(pages) == 0 {
		return nil, errors.New("docs/operations/README.md links to no page")
	}
	return pages, nil
}

// Guide returns the blocks of all pages, in the order of the table of contents. Fails if a block of commands has no
// mark of this package.
func Guide(guide string) ([]Block, error) {
	pages, err := Pages(guide)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(guide, page))
		if err != nil {
			return nil, err
		}
		some, err := parse(page, string(text))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, some...)
	}
	return blocks, nil
}

// parse returns the blocks of a page. A block ```text after `<!-- shows -->` is the output of the block before it.
func parse(page, text string) ([]Block, error) {
	var blocks []Block
	var inside *strings.Builder
	mark, fence := "", ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case inside == nil && strings.HasPrefix(line, "```"):
			inside, fence = &strings.Builder{}, line
			if line == "```sh" {
				block := Block{Page: page, Line: i + 1}
				named := testedBy.FindStringSubmatch(mark)
				if named == nil {
					return nil, fmt.Errorf("%s: no test runs this block", block.Place())
				}
				block.Marks = strings.Fields(named[1])
				for _, mark := range block.Marks {
					if !slices.Contains([]string{Kustomize, Helm, KustomizeCluster, HelmCluster}, mark) {
						return nil, fmt.Errorf("%s: unknown mark %q", block.Place(), mark)
					}
				}
				blocks = append(blocks, block)
			}
			if mark == "<!-- shows -->" && len(blocks) == 0 {
				return nil, fmt.Errorf("docs/operations/%s:%d: output without commands before it", page, i+1)
			}
		case line == "```":
			if fence == "```sh" {
				blocks[len(blocks)-1].Commands = inside.String()
			} else if mark == "<!-- shows -->" {
				blocks[len(blocks)-1].Shown = inside.String()
			}
			inside, mark = nil, ""
		case inside != nil:
			inside.WriteString(line + "\n")
		case line != "":
			mark = line
		}
	}
	return blocks, nil
}

// Compare returns an error unless the output has all lines that are shown, in this order. Words with a digit (names of
// pods, ages, numbers) stand for any word, and `…` for the rest of a line.
func Compare(shown, output string) error {
	rest := strings.Split(output, "\n")
	for _, line := range strings.Split(strings.TrimSuffix(shown, "\n"), "\n") {
		at := slices.IndexFunc(rest, func(said string) bool { return sameForm(line, said) })
		if at < 0 {
			return fmt.Errorf("the page shows, and the output lacks after the lines before it: %q", line)
		}
		rest = rest[at+1:]
	}
	return nil
}

func sameForm(shown, said string) bool {
	wanted, words := strings.Fields(shown), strings.Fields(said)
	for i, word := range wanted {
		if word == "…" {
			return true
		}
		if i >= len(words) {
			return false
		}
		if word != words[i] && !strings.ContainsAny(word, "0123456789") {
			return false
		}
	}
	return len(words) == len(wanted)
}
