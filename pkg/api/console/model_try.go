package console

import (
	"net/http"
	"slices"
	"strings"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// RuleQuestion asks whether a user may do an operation.
type RuleQuestion struct {
	User      string // uuid; "": nobody is logged in
	AAL       int    // of their session
	Store     string
	Operation policy.Op
	UUID      string // of the object; not for a creation
	Input     []byte // JSON, of a creation or an update; nil: none
	Rule      string // to try in place of the rule of the operation; "" for none
}

// RuleAnswer is the answer to a RuleQuestion.
type RuleAnswer struct {
	access.Explanation
	NoRoute string // why HTTP does not offer the operation to anyone; "" if it does
}

// Granted reports whether the user may do the operation over HTTP.
func (a *RuleAnswer) Granted() bool { return a.Explanation.Granted() && a.NoRoute == "" }

// Refused are the fields because of which the operation is refused.
func (a *RuleAnswer) Refused() (names []string) {
	for _, f := range a.Fields {
		if f.Refused() {
			names = append(names, f.Field)
		}
	}
	return names
}

// Bounds of the fields of the form, in bytes.
const (
	maxTriedRule = 8 << 10
	maxTriedName = 1 << 10
)

// modelTest is the section of the rule tester: its form and its result.
type modelTest struct {
	Store     string
	Offered   bool
	User      string // an address or a uuid, as it was typed
	AAL       int
	Operation string
	UUID      string
	Input     string
	Rule      string

	Found   string // the uuid of the user
	Answer  *RuleAnswer
	Problem string
	Fields  []errs.Field
}

// Operations are those of the form.
func (modelTest) Operations() []policy.Op {
	return []policy.Op{policy.Create, policy.Get, policy.List, policy.Update, policy.Delete}
}

// test answers the question of the form.
func (v *modelView) test(r *request) error {
	s, st, err := v.store(r)
	if err != nil {
		return err
	}
	if v.Try == nil {
		return notFound("the console has no rule tester here")
	}
	form, err := r.Form()
	if err != nil {
		return err
	}
	trimmed := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	t := modelTest{Store: s.Name, Offered: true, User: trimmed("user"), Operation: trimmed("operation"),
		UUID: trimmed("uuid"), Input: strings.ReplaceAll(trimmed("input"), "\r\n", "\n"),
		Rule: strings.ReplaceAll(trimmed("rule"), "\r\n", "\n"), AAL: 1}
	if trimmed("aal") == "2" {
		t.AAL = 2
	}
	status := http.StatusOK
	if err := v.answer(r, s, &t); err != nil {
		kind := errs.KindOf(err)
		if !slices.Contains([]errs.Kind{errs.Invalid, errs.NotFound, errs.TooLarge}, kind) {
			return err
		}
		r.RecordError(err)
		t.Problem, t.Fields = messageOf(err)
		status = http.StatusBadRequest
	}
	if r.Partial() {
		return r.Fragment("model_store", "model_tested", t)
	}
	return r.page(status, "model_store", s.Name, v.page(r, s, st, t))
}

func (v *modelView) answer(r *request, s *ModelStore, t *modelTest) error {
	op := policy.Op(t.Operation)
	sends := op == policy.Create || op == policy.Update
	switch {
	case !slices.Contains(t.Operations(), op):
		return errs.New(errs.Invalid, "choose an operation")
	case op != policy.Create && t.UUID == "":
		return errs.New(errs.Invalid, "Object: %s needs the uuid of an object", op)
	case len(t.UUID) > maxTriedName || len(t.User) > maxTriedName:
		return errs.New(errs.Invalid, "a uuid or an address is longer than %d bytes", maxTriedName)
	case len(t.Rule) > maxTriedRule:
		return errs.New(errs.Invalid, "Rule: longer than %d bytes", maxTriedRule)
	}
	q := RuleQuestion{AAL: t.AAL, Store: s.Name, Operation: op, Rule: t.Rule}
	if op != policy.Create {
		q.UUID = t.UUID
	}
	if sends && t.Input != "" {
		if _, err := object.Parse([]byte(t.Input)); err != nil {
			return errs.Wrap(err, errs.Invalid, "Input: expected a JSON object")
		}
		q.Input = []byte(t.Input)
	}
	if t.User != "" {
		ctx, err := r.Call()
		if err != nil {
			return err
		}
		user, err := v.Accounts.FindUser(ctx, t.User)
		switch errs.KindOf(err) {
		case errs.NotFound, errs.Denied:
			return errs.New(errs.NotFound,
				"User: there is no such user: write a whole e-mail address, or the uuid of a user or an ident")
		}
		if err != nil {
			return err
		}
		q.User, t.Found = user.UUID, user.UUID
	}
	answer, err := v.Try(r.Context(), q)
	t.Answer = answer
	return err
}

// Bounds of what a result shows.
const (
	maxShownValue  = 400
	maxShownFields = 100
)

// Shown is the beginning of a value.
func (modelTest) Shown(value string) string { return shorten(value, maxShownValue) }

// ShownFields are the first fields of the result.
func (t modelTest) ShownFields() []access.FieldAccess {
	return t.Answer.Fields[:min(len(t.Answer.Fields), maxShownFields)]
}

// MoreFields says how many others there are.
func (t modelTest) MoreFields() string {
	if more := len(t.Answer.Fields) - maxShownFields; more > 0 {
		return count.Of(more, "more field")
	}
	return ""
}
