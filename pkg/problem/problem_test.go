package problem_test

import (
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/problem"
)

func TestEveryKindIsTranslatedThereAndBack(t *testing.T) {
	for kind := errs.Internal; kind <= errs.Canceled; kind++ {
		n := problem.Of(kind)
		want := kind
		if kind == errs.Canceled {
			want = errs.Unavailable
		}
		if n.Status < 400 || n.Title == "" || problem.Kind(problem.TypePrefix+n.Type) != want ||
			problem.Kind(n.Type) != want {
			t.Errorf("%s becomes %+v, which becomes %s", kind, n, problem.Kind(n.Type))
		}
	}
	if problem.Of(errs.Kind(99)).Status != 500 || problem.Kind("urn:other") != errs.Internal {
		t.Error("an unknown kind or type is not internal")
	}
}
