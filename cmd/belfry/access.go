package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

type accessCmd struct {
	Check accessCheckCmd `cmd:"" help:"Explain whether a user may do something with an object: the rule, its values, its result."`
}

type accessCheckCmd struct {
	configuration
	User  string        `help:"Uuid of the user; without it nobody is logged in." placeholder:"UUID"`
	AAL   int           `name:"aal" default:"1" help:"Authenticator assurance level of the user's session: 2 with a second factor."`
	Age   time.Duration `help:"How long ago the user has proven who they are." placeholder:"DURATION"`
	Store string        `required:"" help:"Name of the store." placeholder:"NAME"`
	Op    string        `required:"" enum:"create,get,list,update,delete" help:"create, get, list, update or delete." placeholder:"OPERATION"`
	UUID  string        `name:"uuid" help:"Uuid of the object; not for create." placeholder:"UUID"`
	Input string        `help:"What create or update would send." placeholder:"JSON"`
}

// Run prints the decision. Its exit code is 1 when the user may not.
func (c *accessCheckCmd) Run(ctx context.Context, s streams) error {
	op := policy.Op(c.Op)
	switch sends := op == policy.Create || op == policy.Update; {
	case op == policy.Create && c.UUID != "":
		return errs.New(errs.Invalid, "--uuid: create has no object yet; --input has what it sends")
	case op != policy.Create && c.UUID == "":
		return errs.New(errs.Invalid, "--uuid: %s needs the uuid of an object", op)
	case !sends && c.Input != "":
		return errs.New(errs.Invalid, "--input: %s sends no object", op)
	}
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	answer, err := command.CheckAccess(ctx, loaded, command.Question{User: c.User, AAL: c.AAL, Age: c.Age, Store: c.Store, Operation: op, UUID: c.UUID, Input: []byte(c.Input)})
	if err != nil {
		return err
	}
	c.print(s.out, answer)
	if !answer.Granted() {
		return errFound
	}
	return nil
}

func (c *accessCheckCmd) print(w io.Writer, a *command.Access) {
	result := "denied"
	if a.Granted() {
		result = "allowed"
	}
	what := fmt.Sprintf("%s %s", c.Op, c.Store)
	if c.UUID != "" {
		what += " " + c.UUID
	}
	fmt.Fprintf(w, "%s: %s, %s\n", result, what, cmp.Or(c.User, "nobody logged in"))
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
	for _, f := range a.Fields {
		if f.Refused() {
			fmt.Fprintf(t, "  refused\tthe field %s\n", f.Field)
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
	if len(a.Fields) > 0 {
		fmt.Fprintln(w, "fields")
		printFields(t, a.Fields)
		_ = t.Flush()
	}
}

// printFields prints fields with what decides about them, those of which the same is to be said together.
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

// explained says whether a field is read and may be written, and the rule where it is not.
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
