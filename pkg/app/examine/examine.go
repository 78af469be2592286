// Package examine checks whether everything that a configuration names works, for `belfry doctor`.
package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/operations/doctor"
)

// The areas of findings.
const (
	AreaConfig       = "configuration"
	AreaProcess      = "process"
	areaBackend      = "backend"
	areaBinaries     = "binaries"
	AreaBus          = "bus"
	areaListener     = "listener"
	AreaMailer       = "mailer"
	areaCertificate  = "certificate"
	areaClock        = "clock"
	areaDisk         = "disk"
	AreaVersion      = "version"
	areaBackup       = "backup"
	defaultExamining = 15 * time.Second
)

// DoctorOptions are the options of Doctor.
type DoctorOptions struct {
	Bus    *bus.Options  // the bus, and the user; nil: those of the configuration
	Within time.Duration // time limit for all checks; 0: 15 s
}

// DoctorConfig reports the problems of a configuration that can't be read, or is invalid.
func DoctorConfig(err error) *doctor.Report {
	r := &doctor.Report{Findings: []doctor.Finding{}}
	var problems config.Problems
	if !errors.As(err, &problems) {
		r.Findings = append(r.Findings, doctor.Finding{Level: doctor.Problem, Area: AreaConfig,
			Name: "configuration.unreadable", Says: MessageOf(err), Do: "name the file with --config"})
	}
	for _, p := range problems {
		at := p
		at.Key = "" // the finding's subject has the key
		r.Findings = append(r.Findings, doctor.Finding{Level: doctor.Problem, Area: AreaConfig,
			Name: "configuration.invalid", Subject: p.Key, Says: at.Error(),
			Do: "correct the file; `belfry config check` checks it again"})
	}
	return r
}

// Doctor concurrently checks everything that a configuration names, and asks a belfry that serves it on this machine.
// It changes nothing and sends no mails.
func Doctor(ctx context.Context, c *config.Config, o DoctorOptions) *doctor.Report {
	p, err := plan.Compile(c)
	if err != nil {
		r := DoctorConfig(err)
		r.Redact(c.Secrets())
		return r
	}
	return NewExamination(p, o).Run(ctx, cmp.Or(o.Within, defaultExamining))
}

// NewExamination returns an examination of everything that a plan names.
func NewExamination(p *plan.Plan, o DoctorOptions) *Examination {
	e := &Examination{plan: p, config: p.Config, Bus: o.Bus, Now: time.Now}
	e.holder, e.holderErr = hold.HolderOf(p.Config.Data)
	return e
}

// Run makes all checks concurrently, within a time limit.
func (e *Examination) Run(ctx context.Context, within time.Duration) *doctor.Report {
	r := doctor.Run(ctx, e.checks(), within)
	secrets := e.config.Secrets()
	if e.Bus != nil {
		secrets = append(secrets, e.Bus.Auth.Password)
	}
	r.Redact(secrets)
	return r
}

// Examination is one call of Doctor.
type Examination struct {
	plan      *plan.Plan
	config    *config.Config
	Bus       *bus.Options // nil: as configured
	Now       func() time.Time
	holder    *hold.Holder // the holder of the data folder; nil: nobody
	holderErr error        // why the holder is not known

	opening sync.Mutex // held while a folder is open
}

// serves reports whether a belfry that can be asked holds the data folder.
func (e *Examination) serves() bool { return e.holder != nil && e.holder.Control != "" }

// checks returns all checks.
func (e *Examination) checks() []doctor.Check {
	all := []doctor.Check{
		{Area: AreaConfig, Subject: e.config.File(), Ask: e.askConfig},
		{Area: AreaProcess, Ask: e.askProcess},
	}
	all = append(all, e.backendChecks()...)
	all = append(all, e.storageChecks()...)
	all = append(all, e.busChecks()...)
	for _, name := range slices.Sorted(maps.Keys(e.config.Mailers)) {
		if e.usesMailer(name) {
			all = append(all, doctor.Check{Area: AreaMailer, Subject: name,
				Ask: func(ctx context.Context) []doctor.Finding { return e.askMailer(ctx, name) }})
		}
	}
	return append(all,
		doctor.Check{Area: areaCertificate, Ask: e.askCertificates},
		doctor.Check{Area: areaDisk, Ask: e.askDisks},
		doctor.Check{Area: areaBackup, Ask: e.askBackups},
	)
}

// askConfig reports the findings of `config check`, and stores with unrestricted access.
func (e *Examination) askConfig(context.Context) (all []doctor.Finding) {
	if err := plan.CheckStrictly(e.config); err != nil {
		return DoctorConfig(err).Findings
	}
	for _, w := range plan.Warnings(e.config) {
		if !isAboutCertificate(w) {
			all = append(all, doctor.Finding{Level: doctor.Warning, Name: "configuration.doubtful", Says: w,
				Do: "see docs/reference/configuration.md; `belfry config check` shows it, too"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.plan.Open)) {
		all = append(all, doctor.Finding{Level: doctor.Warning, Name: "configuration.open", Subject: "stores." + name,
			Says: "everyone has access to it: its policy lacks " + strings.Join(e.plan.Open[name], ", "),
			Do:   "set stores." + name + ".policy, or remove expose"})
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "configuration.ok", Says: "it is valid"})
	}
	return all
}

// askProcess requests the findings of the belfry that serves the data folder.
func (e *Examination) askProcess(ctx context.Context) []doctor.Finding {
	switch {
	case e.holderErr != nil:
		return []doctor.Finding{{Level: doctor.Unseen, Name: "process.unknown", Says: MessageOf(e.holderErr),
			Do: "run this command as the user of belfry"}}
	case e.holder == nil:
		return e.notServed(ctx)
	case !e.serves():
		return []doctor.Finding{{Level: doctor.Unseen, Name: "process.other",
			Says: e.holder.String() + " holds the data folder " + e.config.Data,
			Do:   "repeat this command when it has ended"}}
	}
	reply, err := command.Examine.Ask(ctx, *e.holder, struct{}{})
	if err != nil {
		return []doctor.Finding{{Level: doctor.Problem, Name: "process.silent",
			Says: e.holder.String() + " does not report its state: " + MessageOf(err),
			Do:   "if it has another version, restart it with this one; else see its log"}}
	}
	if reply.Version != plan.Version() {
		reply.Findings = append(reply.Findings, doctor.Finding{Level: doctor.Warning, Area: AreaVersion,
			Name: "version.command", Subject: e.holder.String(),
			Says: "its version is " + reply.Version + ", and the version of this command is " + plan.Version(),
			Do:   "restart it to complete an update, or use the command of its version"})
	}
	if e.Bus != nil { // the user of the flags may see what that of the process may not
		reply.Findings = slices.DeleteFunc(reply.Findings, func(f doctor.Finding) bool { return f.Name == busDenied })
	}
	return reply.Findings
}

// notServed returns findings about the machine while no process serves the data folder.
func (e *Examination) notServed(ctx context.Context) []doctor.Finding {
	all := []doctor.Finding{{Level: doctor.Unseen, Name: "process.none",
		Says: "no belfry serves the data folder " + e.config.Data + " on this machine, so its own findings are missing",
		Do:   "start it with `belfry serve`, or run this command on its machine, as its user"}}
	for _, at := range []struct{ key, address string }{{"listen", e.config.Listen},
		{"metrics.listen", e.config.Metrics.Listen}, {"http.redirect", e.config.HTTP.Redirect}} {
		if at.address == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.address)
		if err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "process.port", Subject: at.key,
				Says: fmt.Sprintf("a belfry could not listen on %s: %v", at.address, reasonOf(err)),
				Do:   "stop the program that uses the port, or choose another port for " + at.key})
			continue
		}
		_ = l.Close()
	}
	return all
}

// reasonOf is the last reason of an error of the network or the system, without the addresses around it.
func reasonOf(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}

// MessageOf returns the complete message of an error for an operator, without secrets, which Redact hides.
func MessageOf(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// deniedOf returns the permission that the server of the bus denied, if any.
func deniedOf(ctx context.Context, err error) (subject string, denied bool) {
	var d *bus.DeniedError
	if errors.As(context.Cause(ctx), &d) || errors.As(err, &d) {
		return d.Subject, true
	}
	return "", errors.Is(err, bus.ErrPermissionDenied)
}
