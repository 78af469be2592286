package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"belfry/pkg/app"
	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
)

type accessCmd struct {
	Check accessCheckCmd `cmd:"" help:"Explain whether a user may do something with an object: the rule, its values, its result."`
}

type accessCheckCmd struct {
	configuration
	User  string `help:"Uuid of the user; without it nobody is logged in." placeholder:"UUID"`
	Store string `required:"" help:"Name of the store." placeholder:"NAME"`
	Op    string `required:"" enum:"create,get,list,update,delete" help:"create, get, list, update or delete." placeholder:"OPERATION"`
	UUID  string `name:"uuid" help:"Uuid of the object; not for create." placeholder:"UUID"`
	Input string `help:"What create or update would send." placeholder:"JSON"`
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
	answer, err := app.CheckAccess(ctx, loaded, app.Question{User: c.User, Store: c.Store, Operation: op, UUID: c.UUID, Input: []byte(c.Input)})
	if err != nil {
		return err
	}
	c.print(s.out, answer)
	if !answer.Granted() {
		return errFound
	}
	return nil
}

func (c *accessCheckCmd) print(w io.Writer, a *app.Access) {
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
	outcome := fmt.Sprint(a.Allowed)
	if a.Reason != "" {
		outcome = "denies, since it can't be evaluated: " + a.Reason
	}
	fmt.Fprintf(t, "  result\t%s\n", outcome)
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
}
