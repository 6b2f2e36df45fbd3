package deploy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// longestDefault is the length up to which a default stands in the table; longer ones would make it unreadable.
const longestDefault = 110

// ValuesTable returns a Markdown table of a chart's values: name, default, and the comment above it. A map is one row if
// no value in it has a comment.
func ValuesTable(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", fmt.Errorf("values must be a map")
	}
	var table strings.Builder
	table.WriteString("| value | default | what |\n|---|---|---|\n")
	if err := addRows(&table, "", document.Content[0]); err != nil {
		return "", err
	}
	return table.String(), nil
}

func addRows(table *strings.Builder, prefix string, values *yaml.Node) error {
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		name, comment := prefix+key.Value, prose(key.HeadComment)
		if value.Kind == yaml.MappingNode && isCommented(value) {
			if comment != "" {
				fmt.Fprintf(table, "| `%s` | | %s |\n", name, comment)
			}
			if err := addRows(table, name+".", value); err != nil {
				return err
			}
			continue
		}
		text, err := flow(value)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", name, text, comment)
	}
	return nil
}

// isCommented returns whether a value inside has a comment of its own.
func isCommented(values *yaml.Node) bool {
	for i := 0; i < len(values.Content); i += 2 {
		if values.Content[i].HeadComment != "" || (values.Content[i+1].Kind == yaml.MappingNode && isCommented(values.Content[i+1])) {
			return true
		}
	}
	return false
}

func prose(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}

// flow returns a value in one line.
func flow(value *yaml.Node) (string, error) {
	inOneLine(value)
	text, err := yaml.Marshal(value)
	if err != nil {
		return "", err
	}
	line := strings.Join(strings.Fields(string(text)), " ")
	if len(line) > longestDefault {
		return "see values.yaml", nil
	}
	return "`" + strings.ReplaceAll(line, "|", `\|`) + "`", nil
}

func inOneLine(value *yaml.Node) {
	value.HeadComment, value.LineComment, value.FootComment = "", "", ""
	if value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode {
		value.Style = yaml.FlowStyle
	}
	for _, child := range value.Content {
		inOneLine(child)
	}
}
