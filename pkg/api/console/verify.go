package console

import (
	"context"
	"log/slog"

	"belfry/internal/count"
	"belfry/pkg/binary"
	"belfry/pkg/mapping/verify"
)

// Verifier compares copies with their sources for the view Verify, one run at a time in all processes that share the
// stores.
type Verifier interface {
	// Start starts a run; Conflict while one is in progress. Deep reads the content of every file. The run outlives
	// ctx. Its error is logged with the attributes of ctx.
	Start(ctx context.Context, by, request string, repair, deep bool) error
	// Stop ends the run that is in progress, if any, in any process.
	Stop(ctx context.Context) error
	// Last returns the run in progress, or else the last one, of all processes; nil if there was no run.
	Last(ctx context.Context) (*Verification, error)
}

// Verification is a run of a Verifier.
type Verification struct {
	Run
	Verified
}

// Verified are the options of a verification, and its findings.
type Verified struct {
	Repair, Deep bool
	Progress     verify.Progress
	Report       *verify.Report `json:",omitempty"` // nil while it is in progress, and after an error
	Binaries     *binary.Report `json:",omitempty"` // nil without binary services
}

// Problem describes Err for people; "" without an error.
func (v *Verification) Problem() string {
	if v.Repair {
		return v.problem(" Its repairs are kept.")
	}
	return v.problem("")
}

// Clean reports whether a run has found no differences.
func (v *Verification) Clean() bool {
	return v.Report != nil && v.Report.Clean() && (v.Binaries == nil || v.Binaries.Clean())
}

// differences is a number of differences in words.
func differences(n int) string {
	return formatCount(int64(n)) + " " + count.Noun(n, "difference")
}

// FoundText is Found in words.
func (v *Verification) FoundText() string { return differences(v.Found()) }

// Found is the number of differences that a run has found.
func (v *Verification) Found() int {
	found := len(v.Report.Differences) + v.Report.More
	if u := v.Report.Unique; u != nil {
		found += len(u.Findings) + u.More
	}
	return found
}

// shownDifferences is how many differences the page lists.
const shownDifferences = 200

// Shown are the differences that the page lists.
func (v *Verification) Shown() []verify.Difference {
	return v.Report.Differences[:min(len(v.Report.Differences), shownDifferences)]
}

func (c *Console) verify(o Verifier) view {
	if o == nil {
		return view{}
	}
	v := verifyView{o}
	return view{name: "verify", title: "Verify", routes: []route{
		get("/verify", v.show), post("/verify", v.start), post("/verify/stop", v.stop),
	}}
}

type verifyView struct{ verifier Verifier }

func (v verifyView) show(r *request) error {
	last, err := v.verifier.Last(r.Context())
	if err != nil {
		return err
	}
	if r.Partial() {
		return r.Fragment("verify", "state", last)
	}
	return r.Page("verify", "Verify", last)
}

func (v verifyView) start(r *request) error {
	form, err := r.Form()
	if err != nil {
		return err
	}
	repair, deep := form.Get("repair") == "true", form.Get("deep") == "true"
	if err := v.verifier.Start(r.Context(), r.name(), r.ID, repair, deep); err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "a verification was started in the console", slog.Bool("repair", repair), slog.Bool("deep", deep), slog.String("actor", r.Session.User.UUID))
	return r.Redirect(pathOf("verify"), "")
}

func (v verifyView) stop(r *request) error {
	if err := v.verifier.Stop(r.Context()); err != nil {
		return err
	}
	return r.Redirect(pathOf("verify"), "The run is being stopped.")
}
