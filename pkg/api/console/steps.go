package console

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

const (
	stepsName = "start"
	stepsPath = "/" + stepsName
)

// Bounds of what is read to find which steps are done.
const (
	maxStepStores = 20  // that are searched for an object
	maxStepReads  = 10  // objects of each
	maxStepUsers  = 200 // that are searched for a second admin
	stepTime      = 500 * time.Millisecond
)

// The names of the steps, in their order.
const (
	stepStore  = "store"
	stepObject = "object"
	stepCurl   = "curl"
	stepMail   = "mail"
	stepSafety = "safety"
)

var stepNames = []string{stepStore, stepObject, stepCurl, stepMail, stepSafety}

// stepsView is the page of the first steps. It reads each time which steps are done: none is
// done because it was clicked.
type stepsView struct {
	accounts Accounts
	objects  Objects
	mail     *Mailer // nil: no mails are sent
	newStore string  // path of the form for a store; "" without it
	settings bool    // there are forms for mailers
	account  string  // path of the page on which users add a second factor; "" for none
}

// firstSteps returns the view of the first steps.
func (c *Console) firstSteps(o Options) view {
	if o.Users == nil || o.Objects == nil {
		return view{}
	}
	c.steps = &stepsView{accounts: o.Users.Accounts, objects: *o.Objects, newStore: c.newStore,
		settings: o.Model.edited(), account: o.Account}
	if o.System != nil {
		c.steps.mail = o.System.Mail
	}
	return view{name: stepsName, title: "First steps", group: storesGroup, routes: []route{
		get(stepsPath, c.steps.show), post(stepsPath, c.steps.settle),
	}}
}

// steps is the data of the page.
type steps struct {
	Done, Skipped map[string]bool
	Left          int
	Dismissed     bool

	Store    string // an own store; "" for none
	NewStore string
	Me       string // path of the admin's own page
	URL      string // of belfry, for requests
	Mail     *Mailer
	Settings bool
	Account  string
}

// settledSteps are the steps that this browser no longer shows as left: those that were skipped.
type settledSteps []string

func (s settledSteps) all() bool { return slices.Contains(s, "all") }

const stepsCookie = "belfry-console-steps"

// settledSteps returns the steps that were skipped in this browser.
func (r *request) settledSteps() settledSteps {
	for _, names := range cookieValues[settledSteps](r, stepsCookie, maxValue) {
		return names
	}
	return nil
}

func (r *request) settle(names settledSteps) error {
	slices.Sort(names)
	return r.setCookie(stepsCookie, slices.Compact(names), keptAge)
}

// left reports whether a step is neither done nor skipped. Once none is, this browser does not ask again.
func (v *stepsView) left(r *request) (bool, error) {
	if r.settledSteps().all() {
		return false, nil
	}
	s, err := v.read(r)
	if err != nil || s.Left > 0 {
		return true, err
	}
	return false, r.settle(settledSteps{"all"})
}

func (v *stepsView) show(r *request) error {
	s, err := v.read(r)
	if err != nil {
		return err
	}
	return r.Page("steps", "First steps", s)
}

// settle skips a step, or all that are left.
func (v *stepsView) settle(r *request) error {
	form, err := r.Form()
	if err != nil {
		return err
	}
	name, settled := form.Get("skip"), r.settledSteps()
	switch {
	case name == "all":
		if err := r.settle(settledSteps{"all"}); err != nil {
			return err
		}
		return r.Redirect(Path, "")
	case name == "none":
		settled = nil
	case slices.Contains(stepNames, name):
		settled = slices.DeleteFunc(settled, func(n string) bool { return !slices.Contains(stepNames, n) })
		settled = append(settled, name)
	default:
		return errs.New(errs.Invalid, "skip: there is no such step")
	}
	if err := r.settle(settled); err != nil {
		return err
	}
	return r.Redirect(Path+stepsPath, "")
}

// read finds which steps are done.
func (v *stepsView) read(r *request) (steps, error) {
	s := steps{Done: map[string]bool{}, Skipped: map[string]bool{}, NewStore: v.newStore, Mail: v.mail,
		Settings: v.settings, Account: v.account, Me: pathOf("users", r.Session.User.UUID), URL: r.Base().At("")}
	ctx, err := r.Call()
	if err != nil {
		return s, err
	}
	s.Store = v.ownStore()
	me, err := v.accounts.FindUser(ctx, r.Session.User.UUID)
	if err != nil {
		return s, err
	}
	account, err := v.accounts.AccountDetails(ctx, me)
	if err != nil {
		return s, err
	}
	s.Done[stepStore] = s.Store != ""
	s.Done[stepObject] = v.hasObject(ctx)
	s.Done[stepCurl] = slices.ContainsFunc(account.Keys, func(k keys.Info) bool { return k.LastUsed != "" })
	s.Done[stepMail] = v.mail != nil && v.mail.Sent != nil && v.mail.Sent()
	if s.Done[stepSafety], err = v.isSafe(ctx, account); err != nil {
		return s, err
	}
	settled := r.settledSteps()
	s.Dismissed = settled.all()
	for _, name := range stepNames {
		s.Skipped[name] = !s.Done[name] && (s.Dismissed || slices.Contains(settled, name))
		if !s.Done[name] && !s.Skipped[name] {
			s.Left++
		}
	}
	return s, nil
}

// ownStore returns the name of a store that belfry does not have by itself. It prefers one whose objects name
// no object of another own store, since there is no object yet, and then one that the API lists.
func (v *stepsView) ownStore() (name string) {
	own := map[string]bool{}
	for _, info := range v.objects.Stores {
		own[info.Name] = !info.Users && !info.Fixed
	}
	best := 0
	for _, info := range v.objects.Stores {
		if !own[info.Name] {
			continue
		}
		fit := 1
		if info.List {
			fit++
		}
		if !v.namesOther(info.Name, own) {
			fit += 2
		}
		if fit > best {
			name, best = info.Name, fit
		}
	}
	return name
}

// namesOther reports whether the objects of a store name objects of another own store.
func (v *stepsView) namesOther(name string, own map[string]bool) bool {
	st := v.objects.Set.Store(name)
	return slices.ContainsFunc(st.Maps(), func(m store.Mapping) bool { return m.Target != name && own[m.Target] }) ||
		slices.ContainsFunc(st.References(), func(r store.Reference) bool {
			return r.Required && r.Target != name && own[r.Target]
		})
}

// hasObject reports whether one of the own stores has an object. A store that does not reply in time counts as empty.
func (v *stepsView) hasObject(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	searched := 0
	for _, info := range v.objects.Stores {
		if info.Users || info.Fixed || searched == maxStepStores {
			continue
		}
		searched++
		page, err := v.objects.Set.Store(info.Name).List(ctx,
			store.ListOptions{Limit: 1, Fields: "uuid", MaxReads: maxStepReads})
		if err == nil && len(page.Objects) > 0 {
			return true
		}
	}
	return false
}

// isSafe reports whether an admin who loses a password or a device does not lose the console.
func (v *stepsView) isSafe(ctx context.Context, me admin.Account) (bool, error) {
	isPasskey := func(i admin.IdentInfo) bool { return i.Type == record.PasskeyType }
	if me.HasFactor || slices.ContainsFunc(me.Idents, isPasskey) {
		return true, nil
	}
	page, _, err := v.accounts.Accounts(ctx, nil, maxStepUsers)
	return slices.ContainsFunc(page, func(a admin.Account) bool { return a.Admin && a.UUID != me.UUID }), err
}
