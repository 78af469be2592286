package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/config"
	"belfry/pkg/account/sessions"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// The object that holds the names of the session cookie, beside the keys for sealing. All processes share it. The first
// change of the name creates it.
const (
	cookieUUID  = "cookie"
	cookieField = "_cookie"
)

// cookieNames is the content of the object.
type cookieNames struct {
	Name   string                  `json:"name"`
	Former []sessions.FormerCookie `json:"former,omitempty"`
}

// renamed returns the names after the cookie is renamed: the former name is still read for as long as a session lasts.
func (n cookieNames) renamed(name string, now time.Time) cookieNames {
	next := cookieNames{Name: name}
	if n.Name != name {
		next.Former = append(next.Former,
			sessions.FormerCookie{Name: n.Name, Until: now.Add(sessions.SessionMaxAge).UTC().Truncate(time.Second)})
	}
	for _, f := range n.Former {
		if f.Name != name && f.Name != n.Name && now.Before(f.Until) {
			next.Former = append(next.Former, f)
		}
	}
	return next
}

// findFormerCookies finds the former names of the sessions' cookie, and stores its name if it is new.
func (a *Authentication) findFormerCookies(ctx context.Context, g *serving.Generation) error {
	if !a.Roles.Has(plan.RoleFront) {
		return nil
	}
	name := g.Config.Authentication.Cookie
	return a.Await(ctx, g.Config, g.Config.Stores[config.SealKeyStore].Backend, func() (err error) {
		g.FormerCookies, err = rememberCookie(ctx, g.Set.Store(config.SealKeyStore), name, time.Now())
		return err
	})
}

// keepFormerCookies is findFormerCookies for a reload, which continues if the name can't be stored.
func (a *Authentication) keepFormerCookies(before, g *serving.Generation) {
	name, was := g.Config.Authentication.Cookie, before.Config.Authentication.Cookie
	g.FormerCookies = before.FormerCookies
	if name == was || !a.Roles.Has(plan.RoleFront) {
		return
	}
	now := time.Now()
	g.FormerCookies = cookieNames{Name: was, Former: before.FormerCookies}.renamed(name, now).Former
	ctx, cancel := context.WithTimeout(context.Background(), cookieTimeout)
	defer cancel()
	if _, err := rememberCookie(ctx, g.Set.Store(config.SealKeyStore), name, now); err != nil {
		a.Log.Warn("the former name of the session cookie can't be stored; it is read only until the next start",
			"error", err)
	}
}

// cookieTimeout is how long a reload waits for the store.
const cookieTimeout = 10 * time.Second

// rememberCookie stores the name of the cookie, unless it is the stored one, and returns the former names.
func rememberCookie(ctx context.Context, s *store.Store, name string, now time.Time) ([]sessions.FormerCookie, error) {
	stored, err := s.Get(ctx, cookieUUID)
	known := cookieNames{Name: config.DefaultCookie}
	switch {
	case errors.Is(err, errs.NotFound):
		if name == config.DefaultCookie {
			return nil, nil
		}
	case err != nil:
		return nil, err
	default:
		if known, err = cookieNamesOf(stored); err != nil {
			return nil, err
		}
		if known.Name == name {
			return known.Former, nil
		}
	}
	next := known.renamed(name, now)
	if stored.UUID == "" {
		o := object.Object{}
		o.Set(cookieField, next)
		if _, err = s.Save(ctx, o, cookieUUID); !errors.Is(err, errs.Exists) {
			return next.Former, err
		}
	}
	_, err = s.Mutate(ctx, cookieUUID, func(stored store.Stored) (store.Mutation, error) {
		known, err := cookieNamesOf(stored) // another process may have renamed it as well
		if err != nil {
			return store.Mutation{}, err
		}
		next = known.renamed(name, now)
		o := object.Object{}
		o.Set(cookieField, next)
		return store.Mutation{Fields: o}, nil
	})
	return next.Former, err
}

func cookieNamesOf(stored store.Stored) (names cookieNames, err error) {
	if json.Unmarshal(object.Field(stored.Body, cookieField), &names) != nil || names.Name == "" {
		return names, errs.New(errs.Internal,
			"the object %s of store %s has no names in %s: delete it; the session cookie then has no former name",
			cookieUUID, config.SealKeyStore, cookieField)
	}
	names.Former = slices.Clip(names.Former)
	return names, nil
}
