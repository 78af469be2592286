package policy

import (
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"belfry/pkg/object"
)

// Session is the view of the logged-in user's session for rules.
type Session struct {
	AAL             int       // authenticator assurance level: 1, or 2 with a second factor
	AuthenticatedAt time.Time // the last time that the user has proven their identity; zero for an API key
	StepUp          bool      // the user can raise both by proving their identity again
}

// WithoutStepUp returns the session for callers that leave out forbidden values instead of asking for a step-up.
func (s *Session) WithoutStepUp() *Session {
	if s == nil {
		return nil
	}
	alone := *s
	alone.StepUp = false
	return &alone
}

// sessionVariable is the name of the session in rules.
const sessionVariable = "session"

// The fields of the session in rules.
const (
	sessionAAL             = "aal"
	sessionAuthenticatedAt = "authenticatedAt"
)

// value returns a session as rules see it; null for nobody.
func (s *Session) value() ref.Val {
	if s == nil {
		return types.NullValue
	}
	return types.DefaultTypeAdapter.NativeToValue(map[string]ref.Val{
		sessionAAL: types.Int(s.AAL), sessionAuthenticatedAt: types.Timestamp{Time: s.AuthenticatedAt.UTC()},
	})
}

// record returns a session as an object; nil for nobody.
func (s *Session) record() object.Object {
	if s == nil {
		return nil
	}
	o := object.Object{}
	o.Set(sessionAAL, s.AAL)
	o.Set(sessionAuthenticatedAt, object.FormatTime(s.AuthenticatedAt))
	return o
}

// unknownSessionFields finds fields that a session does not have: a rule that names one would never hold.
func unknownSessionFields(op Op, tree *cel.Ast) (problems []Problem) {
	native := tree.NativeRep()
	for _, e := range ast.MatchDescendants(ast.NavigateAST(native), ast.KindMatcher(ast.SelectKind)) {
		of, name := e.AsSelect().Operand(), e.AsSelect().FieldName()
		if of.Kind() != ast.IdentKind || of.AsIdent() != sessionVariable ||
			slices.Contains([]string{sessionAAL, sessionAuthenticatedAt}, name) {
			continue
		}
		at := native.SourceInfo().GetStartLocation(e.ID())
		problems = append(problems, Problem{Op: op, Line: at.Line(), Column: at.Column() + 1,
			Message: "a session has no field " + name + "; it has " +
				strings.Join([]string{sessionAAL, sessionAuthenticatedAt}, " and ")})
	}
	return problems
}
