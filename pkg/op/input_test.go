package op_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"belfry/internal/ordered"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

type letter struct {
	op.Input
	To     string          `form:"to,required,or=address" doc:"Who gets it"`
	Text   *string         `form:"text" doc:"What it says."`
	Urgent bool            `form:"urgent" doc:"It is sent at once."`
	Stamps json.RawMessage `form:"stamps" doc:"Those on it." ref:"Stamps"`
	Kind   string          `form:"kind" enum:"card,letter" doc:"What it is."`
	Undo   bool            `form:"undo,html" doc:"It is not sent."`
	Secret string          `form:"secret,password,required=program" doc:"Of the sender."`
	Others object.Object   `form:"*"`
}

func decode(t *testing.T, html bool, body string) (letter, error) {
	t.Helper()
	rest, err := object.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return op.Decode[letter](op.Input{HTML: html, Rest: rest})
}

func TestFieldsAreReadAsTheirTagsSay(t *testing.T) {
	in, err := decode(t, false, `{"address":" ada ","text":"","urgent":true,"stamps":[1],"undo":true,"color":"red"}`)
	if err != nil || in.To != "ada" || in.Text == nil || !in.Urgent || string(in.Stamps) != "[1]" || in.Undo {
		t.Errorf("a program: %+v, %v", in, err)
	}
	if names := in.Others.Names(); !slices.Equal(names, []string{"color", "undo"}) {
		t.Errorf("the other fields are %v", names)
	}
	in, err = decode(t, true, `{"to":"bob","address":"ada","urgent":"on","stamps":"[1]","undo":"1"}`)
	if err != nil || in.To != "bob" || in.Text != nil || !in.Urgent || string(in.Stamps) != "[1]" || !in.Undo {
		t.Errorf("a browser: %+v, %v", in, err)
	}
	for _, body := range []string{`{"to":1}`, `{"address":[]}`, `{"text":true}`, `{"urgent":"perhaps"}`,
		`{"urgent":1}`} {
		var wrong *errs.Error
		if _, err := decode(t, false, body); !errors.As(err, &wrong) || wrong.Kind != errs.Invalid ||
			len(wrong.Fields) != 1 {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestTheSchemaOfAFormHasWhatItsTagsSay(t *testing.T) {
	content := op.Form[letter]("kind", op.Only("card")).Object("content")
	schema := func(kind string) *ordered.Object { return content.Object(kind).Object("schema") }
	names := func(o *ordered.Object) (all []string) {
		for _, m := range o.Object("properties").Members() {
			all = append(all, m.Name)
		}
		return all
	}
	program, browser := schema(op.JSONType), schema(op.FormType)
	if got := strings.Join(names(program), " "); got != "to text urgent stamps kind secret" {
		t.Errorf("a program sends %s", got)
	}
	if got := strings.Join(names(browser), " "); got != "to text urgent stamps kind undo secret" {
		t.Errorf("a browser sends %s", got)
	}
	for _, c := range []struct {
		of   *ordered.Object
		want []string
	}{{program, []string{"to", "secret"}}, {browser, []string{"to"}}} {
		if required, _ := c.of.Get("required").([]string); !slices.Equal(required, c.want) ||
			c.of.Get("additionalProperties") != true {
			t.Errorf("required are %v, want %v", required, c.want)
		}
	}
	if program.Object("properties").Object("stamps").Get("$ref") == nil ||
		browser.Object("properties").Object("stamps").Get("$ref") != nil {
		t.Error("only programs send a component")
	}
	if program.Object("properties").Object("kind").Get("const") != "card" {
		t.Error("a given schema does not take the place of that of the tags")
	}
}
