package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"belfry/internal/nearest"
	"belfry/pkg/store/schema/format"
)

// values translates type, enum and const.
func (z *normalizer) values(n *node, out jsonObject) {
	if k := n.get("type"); k != nil {
		out[typeKeyword] = z.types(k)
	}
	if k := n.get("enum"); k != nil && z.requireKind(k, "enum", arrayNode) {
		allowed := []json.RawMessage{}
		for _, item := range k.items {
			z.checkNumbers(item, "enum")
			allowed = append(allowed, item.raw())
		}
		out[enumKeyword] = allowed
	}
	if k := n.get("const"); k != nil {
		z.checkNumbers(k, "const")
		out[constKeyword] = []json.RawMessage{k.file.data[k.start:k.end]}
	}
}

func (z *normalizer) types(k *node) []string {
	listed := []*node{k}
	if k.kind == arrayNode {
		listed = k.items
	}
	const advice = "use null, boolean, integer, number, string, array or object, or an array of these"
	if len(listed) == 0 {
		z.refused.add(k, "type", "is empty and would allow nothing", advice)
	}
	types := []string{}
	for _, t := range listed {
		known := slices.Contains([]string{"null", "boolean", "integer", "number", "string", "array", "object"}, t.text)
		if t.kind != stringNode || !known {
			z.refused.add(k, "type", fmt.Sprintf("%s is not a type", t.raw()), advice)
		}
		types = append(types, t.text)
	}
	return types
}

// checkNumbers refuses numbers anywhere in a value that cannot be compared.
func (z *normalizer) checkNumbers(n *node, keyword string) {
	if n.kind == numberNode {
		z.number(n, keyword)
	}
	for _, item := range n.items {
		z.checkNumbers(item, keyword)
	}
	for _, m := range n.members {
		z.checkNumbers(m.value, keyword)
	}
}

func (z *normalizer) number(k *node, keyword string) (number, bool) {
	if !z.requireKind(k, keyword, numberNode) {
		return number{}, false
	}
	v, ok := parseNumber(k.text)
	if !ok {
		z.refused.add(k, keyword, fmt.Sprintf("the exponent of %s is out of range", k.text),
			fmt.Sprintf("keep it between -%d and %d", maxExponent, maxExponent))
	}
	return v, ok
}

// numbers translates multipleOf, maximum, minimum and their exclusive kin.
func (z *normalizer) numbers(n *node, out jsonObject) {
	v := numberValue{}
	for _, bound := range []struct {
		keyword string
		value   *json.Number
	}{
		{"multipleOf", &v.MultipleOf},
		{"maximum", &v.Maximum},
		{"exclusiveMaximum", &v.ExclusiveMaximum},
		{"minimum", &v.Minimum},
		{"exclusiveMinimum", &v.ExclusiveMinimum},
	} {
		k := n.get(bound.keyword)
		if k == nil {
			continue
		}
		value, ok := z.number(k, bound.keyword)
		if ok && bound.keyword == "multipleOf" && (value.negative || value.digits == "") {
			z.refused.add(k, "multipleOf", "must be greater than 0", "write a positive number, or remove it")
		}
		*bound.value = json.Number(k.text)
	}
	if v != (numberValue{}) {
		out[numberKeyword] = v
	}
}

// strings translates maxLength, minLength, pattern, and format where it is asserted.
func (z *normalizer) strings(n *node, out jsonObject) {
	v := stringValue{
		MinLength: z.limit(n, "minLength"),
		MaxLength: z.limit(n, "maxLength"),
	}
	if k := n.get("pattern"); k != nil && z.requireKind(k, "pattern", stringNode) {
		v.Pattern = z.pattern(k, "pattern", k.text)
	}
	if k := n.get("format"); z.formats && k != nil && z.requireKind(k, "format", stringNode) {
		v.Format = k.text
		v.Indexes = n.file.draft == draft2020 && format.DependsOnDraft(v.Format)
		if !format.Known(v.Format) {
			z.refused.add(k, "format",
				fmt.Sprintf("%q is not a format that is asserted, and would be ignored", v.Format),
				formatAdvice(v.Format))
		}
	}
	if z.formats && n.file.draft == draft07 {
		v.Content = z.content(n)
	}
	if v != (stringValue{}) {
		out[stringKeyword] = v
	}
}

// formatAdvice suggests a format in place of an unknown one.
func formatAdvice(name string) string {
	known := format.Names()
	if meant := nearest.Of(name, known); meant != "" {
		return "did you mean " + meant + "? Otherwise use pattern"
	}
	return "use one of " + strings.Join(known, ", ") + ", or pattern"
}

// content translates contentEncoding and contentMediaType of draft-07, which lets them be asserted as it does format;
// later drafts do not. Values that are not known here assert nothing, as that draft has it.
func (z *normalizer) content(n *node) string {
	encoding, media := n.get("contentEncoding"), n.get("contentMediaType")
	base64 := encoding != nil && z.requireKind(encoding, "contentEncoding", stringNode) &&
		strings.EqualFold(encoding.text, "base64")
	isJSON := media != nil && z.requireKind(media, "contentMediaType", stringNode) && media.text == "application/json"
	switch {
	case base64 && isJSON:
		return contentBase64JSON
	case base64:
		return contentBase64
	case isJSON && encoding == nil:
		return contentJSON
	default:
		return ""
	}
}

func (z *normalizer) pattern(at *node, keyword, source string) *patternValue {
	translated, err := translatePattern(source)
	if err != nil {
		z.refused.add(at, keyword,
			fmt.Sprintf("the pattern %q cannot be evaluated as ECMA 262 requires: %v", source, err),
			"write it without that, or constrain the value by other keywords")
		return nil
	}
	return &patternValue{Source: source, Go: translated}
}

// limit reads a count, which may be written 2, 2.0 or 2e0; nil when absent.
func (z *normalizer) limit(n *node, keyword string) *int {
	k := n.get(keyword)
	if k == nil {
		return nil
	}
	v, ok := z.number(k, keyword)
	if !ok {
		return nil
	}
	if v.negative || !v.integer() {
		z.refused.add(k, keyword, fmt.Sprintf("must be a whole number from 0, is %s", k.text),
			"correct it, or remove it")
		return nil
	}
	// No document reaches a count of more than nine digits.
	count := math.MaxInt32
	if len(v.digits)+v.exponent <= 9 {
		count, _ = strconv.Atoi(v.plain())
	}
	return &count
}
