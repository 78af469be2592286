package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

type accessFlags struct {
	User  string        `help:"Uuid of the user; without it nobody is logged in." placeholder:"UUID"`
	AAL   int           `name:"aal" default:"1" help:"Authenticator assurance level of the user's session: 2 with a second factor."`
	Age   time.Duration `help:"How long ago the user authenticated." placeholder:"DURATION"`
	Store string        `required:"" help:"Name of the store." placeholder:"NAME"`
	Op    string        `required:"" enum:"create,get,list,update,delete" help:"create, get, list, update or delete." placeholder:"OPERATION"`
	UUID  string        `name:"uuid" help:"Uuid of the object; not for create." placeholder:"UUID"`
	Input string        `help:"What create or update would send." placeholder:"JSON"`
}

// Request implements Flags.
func (f *accessFlags) Request(context.Context, Streams) (Question, error) {
	op := policy.Op(f.Op)
	switch sends := op == policy.Create || op == policy.Update; {
	case op == policy.Create && f.UUID != "":
		return Question{}, errs.New(errs.Invalid, "--uuid: create has no object yet; pass the new object with --input")
	case op != policy.Create && f.UUID == "":
		return Question{}, errs.New(errs.Invalid, "--uuid: %s needs the uuid of an object", op)
	case !sends && f.Input != "":
		return Question{}, errs.New(errs.Invalid, "--input: %s sends no object", op)
	case f.AAL < 1 || f.AAL > 2:
		return Question{}, errs.New(errs.Invalid, "--aal: expected 1, or 2 with a second factor, not %d", f.AAL)
	}
	q := Question{User: f.User, AAL: f.AAL, Age: f.Age, Store: f.Store, Operation: op, UUID: f.UUID,
		Input: []byte(f.Input)}
	_, err := q.input()
	return q, errs.Wrap(err, errs.Invalid, "--input: expected a JSON object")
}

// Print implements Flags. A denial is an ErrFound.
func (f *accessFlags) Print(s Streams, a *Answer) error {
	f.write(s.Out, a)
	if !a.Granted() {
		return ErrFound
	}
	return nil
}

func (f *accessFlags) write(w io.Writer, a *Answer) {
	result := "denied"
	if a.Granted() {
		result = "allowed"
	}
	what := fmt.Sprintf("%s %s", f.Op, f.Store)
	if f.UUID != "" {
		what += " " + f.UUID
	}
	fmt.Fprintf(w, "%s: %s, %s\n", result, what, cmp.Or(f.User, "nobody logged in"))
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	if a.NoRoute != "" {
		fmt.Fprintf(t, "  HTTP\tdoes not offer it: %s\n", a.NoRoute)
	}
	fmt.Fprintf(t, "  rule of %s\t%s\n", a.Operation, a.Rule)
	result = fmt.Sprint(a.Allowed)
	if a.Reason != "" {
		result = "denies, since it can't be evaluated: " + a.Reason
	}
	fmt.Fprintf(t, "  result\t%s\n", result)
	for _, field := range a.Fields {
		if field.Refused() {
			fmt.Fprintf(t, "  refused\tthe field %s\n", field.Field)
		}
	}
	if a.IsOwner != nil {
		fmt.Fprintf(t, "  isOwner\t%t\n", *a.IsOwner)
	}
	for _, v := range a.Values {
		value := cmp.Or(v.JSON, "no value")
		if v.Private {
			value = "private"
		}
		fmt.Fprintf(t, "  %s.%s\t%s\n", v.Variable, v.Field, value)
	}
	_ = t.Flush()
	if len(a.Parts) > 0 {
		fmt.Fprintln(w, "parts of the rule")
		printParts(t, a.Parts)
		_ = t.Flush()
	}
	if len(a.Fields) > 0 {
		fmt.Fprintln(w, "fields")
		printFields(t, a.Fields)
		_ = t.Flush()
	}
}

// printParts prints the parts of a rule with their values.
func printParts(w io.Writer, all []policy.Part) {
	for _, part := range all {
		value := part.Value
		if part.Private {
			value = "private"
		}
		if part.Decides {
			value += ", decides"
		}
		fmt.Fprintf(w, "  %s\t%s\n", part.Text, value)
	}
}

// printFields prints fields with their decisions. It groups fields with the same decision.
func printFields(w io.Writer, all []access.FieldAccess) {
	names := map[string][]string{}
	var texts []string
	for _, f := range all {
		text := explained(f)
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], f.Field)
	}
	for _, text := range texts {
		fmt.Fprintf(w, "  %s\t%s\n", strings.Join(names[text], ", "), text)
	}
}

// explained describes whether a field may be read and written, with the rule that denies it.
func explained(f access.FieldAccess) string {
	var parts []string
	if d := f.Read; d != nil {
		parts = append(parts, outcome(d, "read", "hidden"))
	}
	if d := f.Write; d != nil {
		not := "may not be written"
		if f.Ignored {
			not = "is ignored when sent"
		}
		parts = append(parts, outcome(d, "may be written", not))
	}
	return strings.Join(parts, "; ")
}

func outcome(d *policy.FieldDecision, yes, no string) string {
	text := no
	if d.Allowed {
		text = yes
	}
	if d.Allowed && strings.HasPrefix(d.Rule, "none: everyone") {
		return text
	}
	text += " (" + d.Rule + ")"
	if d.Reason != "" {
		text += ", since it can't be evaluated: " + d.Reason
	}
	return text
}
