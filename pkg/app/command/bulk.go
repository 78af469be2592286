package command

import (
	"context"
	"log/slog"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// ConsoleOperations are the operations that admins run in the console alone: no command and no control request has
// them. A view of the console has their forms.
var ConsoleOperations = []*Untyped{BulkChange.Untyped()}

// BulkChange changes or deletes many objects of a store.
var BulkChange = Operation[bulk.Request, bulk.Report, bulk.Report]{
	Name:   "bulk change",
	Served: "objects are changed in the console of the process that serves",
	Run: func(ctx context.Context, at *Place, q bulk.Request, report func(bulk.Report)) (*bulk.Report, error) {
		return inStore(ctx, at, q.Store, q.Actor, report,
			func(ctx context.Context, st *store.Store, h bulk.Host) (*bulk.Report, error) {
				return bulk.Run(ctx, st, q, deletionGuard(at, q.Store, q.Actor), h)
			})
	},
	Console: &Console[bulk.Request, bulk.Report]{Path: console.BulkPath,
		About: "Change or delete many objects of a store."},
}

// inStore does work with a store as an admin. The work has to end when a reload has replaced the store, whose rules
// and schema it would not follow, or when the user is no longer an admin.
func inStore(ctx context.Context, at *Place, name, actor string, report func(bulk.Report),
	work func(context.Context, *store.Store, bulk.Host) (*bulk.Report, error)) (done *bulk.Report, err error) {
	st := at.Set.Store(name)
	if st == nil || config.Internal(name) || name == at.Plan.Config.Authentication.IdentStore {
		return nil, errs.New(errs.NotFound, "the console changes no objects of a store %s", name)
	}
	err = at.Users(ctx, func(users *account.Service) error {
		user, err := stillAdmin(ctx, at, users, actor)
		if err != nil {
			return err
		}
		log := at.Log
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		call := store.Call{Client: true, Trusted: true, User: user, Actor: &actor, Origin: event.OriginHTTP}
		done, err = work(store.WithCall(ctx, call), st, bulk.Host{Log: log, Report: report,
			May: func(ctx context.Context) error {
				if at.Current != nil && at.Current().Store(name) != st {
					return errs.New(errs.Canceled, "the configuration was reloaded meanwhile: start again for the rest")
				}
				_, err := stillAdmin(ctx, at, users, actor)
				return err
			}})
		return err
	})
	return done, err
}

// stillAdmin returns a user as rules and interceptors see them; Denied if the user is no admin.
func stillAdmin(ctx context.Context, at *Place, users *account.Service, uuid string) (object.Object, error) {
	ctx = asBelfry(ctx)
	st := at.Set.Store(at.Plan.Config.Authentication.UserStore)
	user, err := st.GetAuthorized(ctx, uuid, policy.Get, nil)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return nil, err
	}
	if err == nil {
		a, failed := users.Admin.Account(ctx, user)
		if failed != nil {
			return nil, failed
		}
		if a.Admin && !a.Disabled {
			return object.Decode(a.User)
		}
	}
	return nil, errs.New(errs.Canceled, "the user who started the run is no longer an admin")
}

// deletionGuard returns what keeps admins from deleting themselves.
func deletionGuard(at *Place, name, actor string) bulk.Guard {
	o := &console.Objects{Set: at.Set, Stores: []console.StoreInfo{
		{Name: at.Plan.Config.Authentication.UserStore, Users: true}}}
	return func(ctx context.Context, target store.Stored) error { return o.RefuseOwn(ctx, actor, name, target) }
}
