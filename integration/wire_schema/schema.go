// Package wire_schema checks Outboard's hand-written subset of Kubernetes' protobuf schema against the schema that the
// k8s.io/api and k8s.io/apimachinery modules ship.
package wire_schema

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// upstreamLine names, in a comment, the message that a message copies, or (before the first message of a file) the
// packages whose messages the file copies by name.
var upstreamLine = regexp.MustCompile(`(?m)^\s*(?://+|\*)?\s*upstream:\s*([A-Za-z0-9_.]+)\s*$`)

// Report is the result of a check.
type Report struct {
	Messages, Fields int
	Problems         []string
}

func (r *Report) problem(format string, arguments ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, arguments...))
}

// Upstream is the schema that the modules ship. Its files are compiled once, when the first check needs them. Not safe
// for concurrent use.
type Upstream struct {
	compiler *protocompile.Compiler
	files    map[string]linker.File // nil: no such file
}

// NewUpstream finds the modules.
func NewUpstream() (*Upstream, error) {
	modules, err := moduleDirectories()
	if err != nil {
		return nil, err
	}
	return &Upstream{files: map[string]linker.File{}, compiler: &protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) { return openUpstream(modules, path) }})}}, nil
}

// Check compares the given sources (by import path) with the upstream schema.
func (u *Upstream) Check(ctx context.Context, sources map[string]string) (*Report, error) {
	ours := &protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	c := &checker{ctx: ctx, upstream: u, report: &Report{}, mapping: map[protoreflect.FullName]protoreflect.FullName{}}
	var names []string
	for name := range sources {
		names = append(names, name)
	}
	files, err := ours.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	// Names first, because fields refer to messages of other files.
	for _, file := range files {
		packages := filePackages(sources[file.Path()])
		for i := range file.Messages().Len() {
			c.name(file, file.Messages().Get(i), packages)
		}
	}
	for _, file := range files {
		for i := range file.Messages().Len() {
			c.message(file.Messages().Get(i))
		}
	}
	return c.report, nil
}

// moduleDirectories returns the paths of the modules with the upstream schema.
func moduleDirectories() (map[string]string, error) {
	directories := map[string]string{}
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery"} {
		output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			return nil, fmt.Errorf("go list -m %s: %w", module, err)
		}
		directories[module] = strings.TrimSpace(string(output))
	}
	return directories, nil
}

func openUpstream(modules map[string]string, path string) (io.ReadCloser, error) {
	for module, directory := range modules {
		if rest, ok := strings.CutPrefix(path, module+"/"); ok {
			return os.Open(filepath.Join(directory, filepath.FromSlash(rest)))
		}
	}
	return nil, os.ErrNotExist
}

var firstMessage = regexp.MustCompile(`(?m)^message\s`)

// filePackages returns the packages named above the first message. A line directly above that message belongs to the
// message.
func filePackages(source string) []string {
	head := source
	if at := firstMessage.FindStringIndex(source); at != nil {
		head = source[:at[0]]
	}
	var packages []string
	for _, match := range upstreamLine.FindAllStringSubmatch(head, -1) {
		packages = append(packages, match[1])
	}
	return packages
}

type checker struct {
	ctx      context.Context
	upstream *Upstream
	report   *Report
	// Maps our messages to upstream's; a message without a partner to "".
	mapping map[protoreflect.FullName]protoreflect.FullName
}

// name finds the upstream partner of a message and of its nested messages.
func (c *checker) name(file protoreflect.FileDescriptor, message protoreflect.MessageDescriptor, packages []string) {
	if message.IsMapEntry() {
		return
	}
	comment := file.SourceLocations().ByDescriptor(message).LeadingComments
	if match := upstreamLine.FindStringSubmatch(comment); match != nil {
		c.pair(message, protoreflect.FullName(match[1]))
	} else {
		relative := strings.TrimPrefix(string(message.FullName()), string(file.Package())+".")
		var found []protoreflect.FullName
		for _, name := range packages {
			if candidate := protoreflect.FullName(name + "." + relative); c.upstream.find(c.ctx, candidate) != nil {
				found = append(found, candidate)
			}
		}
		switch len(found) {
		case 0:
			c.report.problem("%s: no comment says `upstream: …`, and no package named at the top of %s has it", message.FullName(), file.Path())
			c.mapping[message.FullName()] = ""
		case 1:
			c.pair(message, found[0])
		default:
			c.report.problem("%s: could be any of %v; choose one with a comment `upstream: …`", message.FullName(), found)
			c.mapping[message.FullName()] = ""
		}
	}
	for i := range message.Messages().Len() {
		c.name(file, message.Messages().Get(i), packages)
	}
}

func (c *checker) pair(message protoreflect.MessageDescriptor, upstream protoreflect.FullName) {
	c.mapping[message.FullName()] = upstream
	if c.upstream.find(c.ctx, upstream) == nil {
		c.report.problem("%s: upstream has no message %s", message.FullName(), upstream)
		c.mapping[message.FullName()] = ""
	}
}

// find returns an upstream message; its package is a prefix of its name and determines the file.
func (u *Upstream) find(ctx context.Context, name protoreflect.FullName) protoreflect.MessageDescriptor {
	for scope := name.Parent(); scope != ""; scope = scope.Parent() {
		path := strings.ReplaceAll(strings.ReplaceAll(string(scope), ".", "/"), "k8s/io/", "k8s.io/") + "/generated.proto"
		file, known := u.files[path]
		if !known {
			if files, err := u.compiler.Compile(ctx, path); err == nil {
				file = files[0]
			}
			u.files[path] = file
		}
		if file == nil {
			continue
		}
		if message, ok := file.FindDescriptorByName(name).(protoreflect.MessageDescriptor); ok {
			return message
		}
	}
	return nil
}

func (c *checker) message(message protoreflect.MessageDescriptor) {
	if name := c.mapping[message.FullName()]; name != "" && !message.IsMapEntry() {
		c.report.Messages++
		theirs := c.upstream.find(c.ctx, name)
		for i := range message.Fields().Len() {
			c.report.Fields++
			c.field(message.Fields().Get(i), theirs)
		}
		c.rest(message, theirs)
	}
	for i := range message.Messages().Len() {
		c.message(message.Messages().Get(i))
	}
}

// rest checks that every omitted upstream field is reserved by number and name, and that nothing else is.
func (c *checker) rest(ours, theirs protoreflect.MessageDescriptor) {
	present := map[string]bool{}
	for i := range ours.Fields().Len() {
		present[plain(ours.Fields().Get(i))] = true
	}
	numbers, names := map[protoreflect.FieldNumber]bool{}, map[protoreflect.Name]bool{}
	for i := range theirs.Fields().Len() {
		field := theirs.Fields().Get(i)
		numbers[field.Number()], names[field.Name()] = true, true
		if present[plain(field)] {
			continue
		}
		if !ours.ReservedNames().Has(field.Name()) || !ours.ReservedRanges().Has(field.Number()) {
			c.report.problem("%s: upstream has %s = %d: neither present nor reserved by number and name", ours.FullName(), field.Name(), field.Number())
		}
	}
	for i := range ours.ReservedNames().Len() {
		if name := ours.ReservedNames().Get(i); !names[name] && !inlined(theirs, name) {
			c.report.problem("%s: reserves the name %s, which upstream does not have", ours.FullName(), name)
		}
	}
	for i := range ours.ReservedRanges().Len() {
		for number, end := ours.ReservedRanges().Get(i)[0], ours.ReservedRanges().Get(i)[1]; number < end; number++ {
			// Upstream reserves its own former numbers.
			if !numbers[number] && !theirs.ReservedRanges().Has(number) {
				c.report.problem("%s: reserves the number %d, which upstream does not use", ours.FullName(), number)
			}
		}
	}
}

// inlined returns whether JSON has this field although the message does not: a field of an embedded Go struct.
func inlined(message protoreflect.MessageDescriptor, name protoreflect.Name) bool {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if field.Kind() == protoreflect.MessageKind && !field.IsList() && !field.IsMap() && field.Message().Fields().ByName(name) != nil {
			return true
		}
	}
	return false
}

func (c *checker) field(ours protoreflect.FieldDescriptor, message protoreflect.MessageDescriptor) {
	var theirs protoreflect.FieldDescriptor
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); plain(field) == plain(ours) {
			theirs = field
		}
	}
	if theirs == nil {
		c.report.problem("%s: %s has no such field", ours.FullName(), message.FullName())
		return
	}
	if ours.Number() != theirs.Number() {
		c.report.problem("%s: number %d, upstream %d", ours.FullName(), ours.Number(), theirs.Number())
	}
	if label(ours) != label(theirs) {
		c.report.problem("%s: is %s, upstream %s", ours.FullName(), label(ours), label(theirs))
		return
	}
	if ours.IsMap() {
		c.sameType(ours, ours.MapKey(), theirs.MapKey())
		c.sameType(ours, ours.MapValue(), theirs.MapValue())
		return
	}
	c.sameType(ours, ours, theirs)
}

// plain normalizes names: upstream writes hostIP, a C++ schema host_ip.
func plain(field protoreflect.FieldDescriptor) string {
	return strings.ToLower(strings.ReplaceAll(string(field.Name()), "_", ""))
}

func label(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsMap():
		return "a map"
	case field.IsList():
		return "repeated"
	case field.Cardinality() == protoreflect.Required:
		return "required"
	}
	return "singular"
}

// sameType accepts bytes for a string or a message: the bytes on the wire are the same, checked or decoded later.
func (c *checker) sameType(field, ours, theirs protoreflect.FieldDescriptor) {
	if ours.Kind() == protoreflect.BytesKind && (theirs.Kind() == protoreflect.StringKind || theirs.Kind() == protoreflect.MessageKind) {
		return
	}
	if ours.Kind() != theirs.Kind() {
		c.report.problem("%s: type %s, upstream %s", field.FullName(), ours.Kind(), theirs.Kind())
		return
	}
	if ours.Kind() != protoreflect.MessageKind {
		return
	}
	if mapped := c.mapping[ours.Message().FullName()]; mapped != theirs.Message().FullName() {
		c.report.problem("%s: message %s copies %q, upstream has %s here", field.FullName(), ours.Message().FullName(), mapped, theirs.Message().FullName())
	}
}
