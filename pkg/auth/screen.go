package auth

import (
	"context"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// screen asks the interceptor about somebody who is about to be registered,
// before there is anything of them: it may refuse, and may complete the user.
func (s *Service) screen(ctx context.Context, n *newcomer) error {
	if s.interceptor == nil {
		return nil
	}
	asked := n.fields.Clone()
	delete(asked, fieldPassword)
	patch, err := s.interceptor.Ask(ctx, store.Question{
		Op: "register", Store: s.users.Name, Object: asked.Encode(), Datas: n.datas.Encode(), Call: store.CallOf(ctx),
	})
	if err != nil || len(patch) == 0 {
		return err
	}
	if n.fields, err = object.MergePatch(n.fields, s.users.Amendable(patch)); err != nil {
		return err
	}
	return s.users.Check(own(ctx, ""), n.fields, object.NewUUID())
}
