package logins

import (
	"context"
	"errors"
	"net/url"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// FinishProvider handles the callback of a provider, with the secret in the flow's cookie. It logs in the user of
// the identity, and creates the user if necessary. A flow that links an identity keeps the session and issues no
// token: another flow may be in progress in it. A flow for an application issues a code, and leaves the session of
// the browser unchanged.
//
//	Mismatch   the flow belongs to another browser, has expired, or is finished, with a Repetition if it has succeeded
//	Denied     the user refused, or the identity can't be distinguished from another
//	Exists     the identity belongs to another user
//	Invalid    the provider's reply can't be used, or the user schema refuses the user
//	Unavailable
func (s *Flow) FinishProvider(ctx context.Context, query url.Values, browser string,
	from sessions.Client) (session sessions.Issued, provider string, err error) {
	uuid, flow, err := s.Providers.ConsumeFlow(ctx, query, browser, from)
	if r := once.Repeated(err); r != nil {
		return session, r.Provider, once.Recognize(err, from)
	}
	if err != nil {
		return session, "", err
	}
	session, provider, err = s.finishFlow(ctx, query, browser, flow, from)
	s.Uses.Settle(ctx, uuid, err == nil || Pending(err) != nil)
	return session, provider, err
}

// finishFlow completes a flow by its purpose.
func (s *Flow) finishFlow(ctx context.Context, query url.Values, browser string, flow record.Token,
	from sessions.Client) (session sessions.Issued, provider string, err error) {
	provider = flow.FlowProvider
	if from.Application, err = s.Applications.For(flow); err != nil {
		return session, provider, err
	}
	session.Application = from.Application
	id, err := s.Providers.Identify(ctx, query, browser, flow)
	if err != nil {
		return session, provider, err
	}
	if flow.User != "" {
		session, err = s.linkProvider(ctx, id, flow.User, from)
	} else {
		session, err = s.loginOrRegister(ctx, id, from)
	}
	if err == nil || Pending(err) != nil {
		s.Guesses.Return(from.Address) // the attempt that the begin of the flow took
	}
	if err != nil {
		session = sessions.Issued{Application: from.Application}
	}
	return session, provider, err
}

// linkProvider links an identity to the user who began the flow and must still be
// logged in.
func (s *Flow) linkProvider(ctx context.Context, id users.Identity, user string,
	from sessions.Client) (sessions.Issued, error) {
	if from.Session == nil || from.Session.User.UUID != user {
		return sessions.Issued{}, sessions.StateError()
	}
	// A second factor may have been added to the account since the flow began.
	if err := s.Sessions.RequireSecond(ctx, from.Session); err != nil {
		return sessions.Issued{}, err
	}
	owner, _, err := s.DB.FindOwner(record.AsService(ctx, ""), id.Identity)
	switch {
	case err != nil:
		return sessions.Issued{}, err
	case owner.UUID == "":
		err = s.Notices.Announce(record.AsService(ctx, user), from.Session.User,
			notices.Announcement{Kind: notices.NoticeLoginAdded, About: id.Provider})
	case owner.UUID != user:
		err = id.ErrTaken()
	}
	if err != nil {
		return sessions.Issued{}, err
	}
	return sessions.Issued{Session: *from.Session}, s.Links.Link(ctx, id, from.Session)
}

// loginOrRegister logs in the user of an identity, and creates the user if necessary.
func (s *Flow) loginOrRegister(ctx context.Context, id users.Identity, from sessions.Client) (sessions.Issued, error) {
	for range record.Attempts {
		user, ident, err := s.DB.FindOwner(record.AsService(ctx, ""), id.Identity)
		if err != nil {
			return sessions.Issued{}, err
		}
		if user.UUID != "" {
			session, err := s.LogIn(ctx, user, s.Sessions.ProofBy(id.Provider, id.Provider, 1), from)
			if err != nil && Pending(err) == nil {
				return sessions.Issued{}, err
			}
			at := s.DB.Now()
			recordUse := func(ctx context.Context) error {
				_, err := s.Users.RecordProviderUse(ctx, ident.UUID, id, at)
				return record.IgnoreNotFound(err)
			}
			if id.Must {
				// The tokens are the purpose of the login: a login that loses them has failed.
				if err := recordUse(record.AsService(ctx, user.UUID)); err != nil {
					return sessions.Issued{}, err
				}
				return session, err
			}
			s.Sessions.RunInBackground(record.AsService(ctx, user.UUID), "recording a login", recordUse)
			return session, err
		}
		reg := users.New{Identity: id, Fields: object.Object{}, Datas: id.Profile}
		reg.Used = true
		if err := s.Users.InterceptRegistration(ctx, &reg); err != nil {
			return sessions.Issued{}, err
		}
		user, err = s.Users.Create(ctx, reg)
		if errors.Is(err, errs.Exists) {
			continue // a concurrent flow has created the user
		}
		if err != nil {
			return sessions.Issued{}, err
		}
		return s.LogIn(ctx, user, s.Sessions.ProofBy(id.Provider, id.Provider, 1), from)
	}
	return sessions.Issued{}, record.ErrContention()
}
