// Package value has the formats of the single values of a configuration: what parses a text, what a JSON Schema says
// about it, and how the value is shown.
//
// The error of a parser says what is expected, and does not repeat the text, which may be secret.
package value

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"net/mail"
	"strings"
	"time"

	"belfry/internal/contrast"
	"belfry/internal/thumbnail"
)

// Format describes the values of a key.
type Format struct {
	Parse   func(folder, text string) (any, error) // folder is that of the file, at which relative paths begin
	Choices []string                               // if there are no other values
	Use     PathUse                                // of a path

	base   base
	schema Fragment // what is narrower than base
}

// base is what YAML makes of a value that is written without quotes.
type base string

const (
	anyBase     base = ""
	flagBase    base = "boolean"
	integerBase base = "integer"
)

// Fragment is a part of a JSON Schema.
type Fragment map[string]any

// Bounds of numbers of bytes have their patterns, and those of durations: 0 needs no unit. They accept more than the
// parsers.
var (
	sizeSchema     = Fragment{"pattern": `^\d{1,19} ?([KMGTkmgt][iI]?)?[bB]?$`, "minimum": 0}
	durationSchema = Fragment{"pattern": `^(\d{1,6}d)?((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))*$|^0$`, "minimum": 0,
		"maximum": 0}
	// editors and the forms of the console know an expression of CEL by it
	expressionSchema = Fragment{"contentMediaType": "text/x-cel"}
)

// formats are made from parameters.
var formats = map[string]func(p []string) Format{
	"flag": func([]string) Format { return of(parseFlag, flagBase, nil) },
	"one":  func(p []string) Format { return of(oneOf(p...), anyBase, nil, p...) },
	// a flag with words: the first is false, the second true
	"either": func(p []string) Format { return of(either(p), anyBase, nil, p...) },
	"owner":  func([]string) Format { return of(parseOwnerWord, anyBase, nil, "owner") },
	"level":  func([]string) Format { return of(parseLevel, anyBase, nil, levels...) },

	"number": numberFormat,
	"count":  func([]string) Format { return of(parseCount, integerBase, nil) },
	"size":   func(p []string) Format { return of(sizeIn(mustSize(p[0])), integerBase, sizeSchema) },
	"sizeOrNone": func(p []string) Format {
		return of(sizeOrNone(mustSize(p[0]), mustSize(p[1])), integerBase, sizeSchema)
	},
	"duration": func(p []string) Format { return of(durationBetween(p), anyBase, durationSchema) },
	"presign":  func([]string) Format { return of(parsePresign, anyBase, durationSchema) },
	"schedule": func([]string) Format { return of(parseSchedule, anyBase, durationSchema) },

	"file":   func([]string) Format { return ofPath(existingFile, ReadFile) },
	"folder": func([]string) Format { return ofPath(absolute, WrittenFolder) },
	"site":   func([]string) Format { return ofPath(existingFolder, ServedFolder) },

	"url":     func(p []string) Format { return of(URL(p...), anyBase, nil) },
	"baseURL": plain(parseBaseURL), "publicURL": plain(parsePublicURL), "mongoURL": plain(parseMongoURL),
	"traceEndpoint": plain(parseTraceEndpoint),
	"redirect":      plain(parseRedirect), "appRedirect": plain(parseAppRedirect), "origin": plain(parseOrigin),
	"passkeyOrigin": plain(parsePasskeyOrigin),

	"expression": func([]string) Format { return of(parseNonEmpty, anyBase, expressionSchema) },

	"text": plain(parseText), "nonempty": plain(parseNonEmpty), "line": plain(parseLine), "ratio": plain(parseRatio),
	"name": plain(Name), "property": plain(parseProperty), "ownProperty": plain(OwnProperty),
	"textField": plain(parseTextField), "indexField": plain(parseIndexField), "copied": plain(parseCopied),
	"aggregate": plain(parseAggregate),
	"route":     plain(parseRoute), "subfolder": plain(parseSubfolder), "sender": plain(parseSender),
	"color":  plain(parseColor),
	"cookie": plain(parseCookieName), "mediaRange": plain(parseMediaRange), "thumbnail": plain(thumbnail.ParseSize),
	"address": plain(Address), "addressOrNone": plain(parseOptionalAddress), "network": plain(parsePrefix),
	"host": plain(parseHost), "servedHost": plain(parseServedHost), "domain": plain(Domain),
	"localName": plain(LocalName), "rpID": plain(RPID),
	"tenant": plain(parseTenant), "key32": plain(parseKey), "metricsToken": plain(parseMetricsToken),
}

// FormatOf returns a format by its name and its parameters, as in "duration 1s 1h". It panics for an unknown name,
// because the text is in code.
func FormatOf(is string) Format {
	words := strings.Fields(is)
	make, known := formats[words[0]]
	if !known {
		panic("value: unknown format " + is)
	}
	return make(words[1:])
}

func of[T any](parse func(string) (T, error), base base, schema Fragment, choices ...string) Format {
	return Format{Parse: func(_, text string) (any, error) { return parse(text) }, Choices: choices, base: base,
		schema: schema}
}

func ofPath(parse func(folder, text string) (string, error), use PathUse) Format {
	return Format{Parse: func(folder, text string) (any, error) { return parse(folder, text) }, Use: use}
}

func plain[T any](parse func(string) (T, error)) func([]string) Format {
	return func([]string) Format { return of(parse, anyBase, nil) }
}

func numberFormat(p []string) Format {
	low, high := mustNumber(p[0]), mustNumber(p[1])
	return of(numberIn(low, high), integerBase, Fragment{"minimum": low, "maximum": high})
}

// IsFlag reports whether values are true and false.
func (f *Format) IsFlag() bool { return f.base == flagBase }

// fromEnvironment matches references, which reading replaces, so any value can be one.
const fromEnvironment = `\$\{`

// Schema returns the JSON Schema of a value. YAML reads unquoted text as numbers and booleans.
func (f *Format) Schema() Fragment {
	if f.Choices != nil {
		return Fragment{"anyOf": []Fragment{{"enum": f.Choices}, {"type": "string", "pattern": fromEnvironment}}}
	}
	schema := Fragment{"type": []string{"string", "number", "boolean"}}
	switch f.base {
	case flagBase:
		schema = Fragment{"type": []string{"boolean", "string"}, "pattern": "^(true|false)$|" + fromEnvironment}
	case integerBase:
		schema = Fragment{"type": []string{"integer", "string"}, "pattern": `^-?\d+$|` + fromEnvironment}
	}
	more := maps.Clone(f.schema)
	if pattern, ok := more["pattern"].(string); ok {
		more["pattern"] = pattern + "|" + fromEnvironment
		schema["type"] = []string{"string", "integer"}
	}
	maps.Copy(schema, more)
	return schema
}

// Default returns a value in the form of a file and a schema; nil for a zero value, such as 0 or an empty text.
func (f *Format) Default(value any) any {
	switch v := value.(type) {
	case time.Duration:
		if v != 0 {
			return ShowDuration(v)
		}
	case bool:
		switch {
		case f.Choices == nil:
			return v
		case v:
			return f.Choices[len(f.Choices)-1]
		case len(f.Choices) > 1:
			return f.Choices[0]
		}
	case int:
		return f.defaultNumber(int64(v))
	case int64:
		return f.defaultNumber(v)
	case string:
		if v != "" && f.Use == 0 {
			return v
		}
	case slog.Level:
		return strings.ToLower(v.String())
	}
	return nil
}

func (f *Format) defaultNumber(n int64) any {
	text := ShowSize(n)
	switch {
	case n == 0:
		return nil
	case f.schema["pattern"] != nil && !strings.HasSuffix(text, " bytes"):
		return text
	}
	return n
}

func parseSender(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", errors.New("expected an address such as Belfry <no-reply@example.com>")
	}
	return text, nil
}

func parseColor(text string) (string, error) {
	c, err := contrast.Parse(text)
	return c.String(), err
}

// parseKey accepts 32 bytes in base64.
func parseKey(text string) (string, error) {
	const size = 32
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.Strict().DecodeString(plain)
	if err != nil || len(key) != size || strings.ContainsAny(text, "\r\n") {
		return "", errors.New("expected 32 random bytes in base64, as from: openssl rand -base64 32")
	}
	return string(key), nil
}

// minMetricsToken is the length of a token that can't be guessed.
const minMetricsToken = 16

func parseMetricsToken(text string) (string, error) {
	if text != "" && len(text) < minMetricsToken {
		return "", errors.New("expected at least 16 characters, or nothing for no token")
	}
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return "", errors.New("expected printable ASCII characters without spaces")
		}
	}
	return text, nil
}
