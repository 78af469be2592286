package views

import (
	"context"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/mapping/verify"
)

// verifications implements console.Verifier.
type verifications struct {
	*runs[console.Verified]
	run func(ctx context.Context, q command.VerifyRequest, report func(verify.Progress)) (*command.Report, error)
}

var _ console.Verifier = (*verifications)(nil)

func newVerifications(ctx context.Context, v *Views) *verifications {
	return &verifications{
		runs: newRuns(ctx, v, "verification", "verification", shortVerified),
		run: func(ctx context.Context, q command.VerifyRequest, report func(verify.Progress)) (*command.Report, error) {
			return command.Verify.Run(ctx, v.System.Place(v.Served.Now()), q, report)
		},
	}
}

// Start implements console.Verifier.
func (v *verifications) Start(request context.Context, by, id string, repair, deep bool) error {
	return v.start(request, by, id, console.Verified{Repair: repair, Deep: deep}, func(ctx context.Context, change func(func(*console.Verified))) error {
		report, err := v.run(ctx, command.VerifyRequest{Repair: repair, Deep: deep}, func(p verify.Progress) {
			change(func(now *console.Verified) { now.Progress = p })
		})
		if err == nil {
			change(func(now *console.Verified) { now.Report, now.Binaries = report.Report, report.Binaries })
		}
		return err
	})
}

// Last implements console.Verifier.
func (v *verifications) Last(ctx context.Context) (*console.Verification, error) {
	last, err := v.current(ctx)
	if last == nil || err != nil {
		return nil, err
	}
	return &console.Verification{Run: last.Run, Verified: last.State}, nil
}

// maxShared is the number of differences, and of arrays at their limit, in the record. No page lists more.
const maxShared = 200

// shortVerified returns the part of a verification for the record.
func shortVerified(v console.Verified) console.Verified {
	if v.Report != nil {
		r := *v.Report
		if more := len(r.Differences) - maxShared; more > 0 {
			r.Differences, r.More = r.Differences[:maxShared], r.More+more
		}
		r.Full, r.TooLarge = r.Full[:min(len(r.Full), maxShared)], r.TooLarge[:min(len(r.TooLarge), maxShared)]
		if r.Unique != nil {
			u := *r.Unique
			if more := len(u.Findings) - maxShared; more > 0 {
				u.Findings, u.More = u.Findings[:maxShared], u.More+more
			}
			r.Unique = &u
		}
		v.Report = &r
	}
	if v.Binaries != nil {
		b := *v.Binaries
		if len(b.Differences) > 1 { // the page only shows whether there are any
			b.Differences, b.More = b.Differences[:1], b.More+len(b.Differences)-1
		}
		v.Binaries = &b
	}
	return v
}
