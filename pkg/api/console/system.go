package console

import (
	"context"
	"slices"
	"time"

	"belfry/internal/memory"
	"belfry/pkg/operations/backup"
	"belfry/pkg/walk"
)

// System is the data of the view System. All functions are safe for concurrent use and return within a moment.
type System struct {
	Facts      []Fact // about the program and the process
	ConfigFile string
	Config     func() string                      // the configuration as it was read, without secrets
	Checks     func(ctx context.Context) []Check  // health, now
	Disks      func() []Disk                      // of the folders that belfry writes
	Memory     func() []memory.Holder             // who holds it
	Charts     func() (charts []Chart)            // of the last hour
	Ready      func(ctx context.Context) string   // why /readyz is 503; "" when it is not
	Warnings   func(ctx context.Context) []string // problems that do not keep the process from serving
	Walks      func() []walk.Status               // over all objects
	Backups    func(ctx context.Context) Backups
	Reload     func() *Reload // the last one that was requested; nil without one
	Mail       *Mailer        // nil: no mails are sent
}

// Reload is an attempt to serve with a changed configuration.
type Reload struct {
	At       time.Time
	By       string   // "SIGHUP"
	Changed  []string // keys; none: nothing had changed
	Building []string // indexes that have to be built
	Refused  string   // why nothing was changed; "" if it was not refused
}

// Fact is something about the process.
type Fact struct{ Name, Value string }

// Check is whether a part works.
type Check struct {
	Name string // "backend main"
	Kind string // "MongoDB"
	OK   bool
	Says string // why not, or a detail
	Took time.Duration
}

// Disk is the space of a folder's disk.
type Disk struct {
	What, Folder string
	Free, Total  int64 // bytes
}

// Used returns how much of a disk is used, in percent.
func (d Disk) Used() int64 {
	if d.Total <= 0 {
		return 0
	}
	return 100 - 100*d.Free/d.Total
}

// Low reports whether a disk is nearly full.
func (d Disk) Low() bool { return d.Total > 0 && d.Free*10 < d.Total }

type systemView struct{ System }

func (c *Console) system(o *System) view {
	if o == nil {
		return view{}
	}
	v := &systemView{*o}
	v.Facts = slices.Clone(o.Facts)
	return view{name: "system", title: "System", routes: []route{
		get("/system", v.show),
		get("/system/charts", v.charts),
	}}
}

// checksTime is how long the page waits for checks; one that takes longer is shown as failed.
const checksTime = 2 * time.Second

// systemPage is the data of the page.
type systemPage struct {
	Facts      []Fact
	Checks     []Check
	Healthy    bool
	NotReady   string // why load balancers send no requests; "" if they do
	Warnings   []string
	Disks      []Disk
	Memory     []memory.Holder
	Charts     []drawnChart
	ConfigFile string
	Config     string
	Walks      []walk.Status // that are not complete
	Complete   int           // others
	Backups    Backups
	Reload     *Reload
	Mail       *Mailer
	MailFails  string
}

func (v *systemView) show(r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checksTime)
	defer cancel()
	p := systemPage{Facts: v.Facts, Checks: v.Checks(ctx), Healthy: true, ConfigFile: v.ConfigFile, Config: v.Config(),
		Charts: v.drawn(), Disks: v.Disks(), NotReady: v.Ready(ctx), Warnings: v.Warnings(ctx), Backups: v.Backups(ctx),
		Reload: v.Reload(), Mail: v.Mail}
	if v.Memory != nil {
		p.Memory = v.Memory()
	}
	if v.Mail != nil {
		p.MailFails = v.Mail.Failing(ctx)
	}
	for _, s := range v.Walks() {
		if s.State() == "complete" {
			p.Complete++
		} else {
			p.Walks = append(p.Walks, s)
		}
	}
	for _, c := range p.Checks {
		p.Healthy = p.Healthy && c.OK
	}
	return r.Page("system", "System", p)
}

// charts replies with the charts alone, for a page that stays open.
func (v *systemView) charts(r *request) error { return r.Fragment("system", "charts", v.drawn()) }

func (v *systemView) drawn() []drawnChart {
	now := time.Now()
	var all []drawnChart
	for _, c := range v.Charts() {
		all = append(all, c.draw(now))
	}
	return all
}

// spread returns the least, the median and the greatest of some values.
func spread(values []float64) (least, middle, most float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// Backups are what the view System shows of backups.
type Backups struct {
	Place   string    // where they are; "": no place is configured
	Next    time.Time // when the schedule makes the next one; zero: there is no schedule
	Running string    // the process that makes one now, and since when; "" for none
	Error   string    // why the state can't be read; "" if it can

	Recent []backup.Attempt // the newest first
}

// Last returns the time at which the latest existing backup began; zero if no backup exists.
func (b Backups) Last() time.Time {
	for _, one := range b.Recent {
		if one.ID != "" {
			return one.Began
		}
	}
	return time.Time{}
}
