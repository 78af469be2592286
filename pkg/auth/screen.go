package auth

import (
	"context"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// screen asks the interceptor about somebody who is about to be registered,
// before there is anything of them: it may refuse, and may complete the user.
func (s *Service) screen(ctx context.Context, n *newcomer) error {
	if s.Interceptor == nil {
		return nil
	}
	asked := n.fields.Clone()
	delete(asked, fieldPassword)
	patch, err := s.Interceptor.Ask(ctx, store.Question{
		Op: "register", Store: s.Users.Name, Object: asked.Encode(), Datas: n.datas.Encode(), Call: store.CallOf(ctx),
	})
	if err != nil || len(patch) == 0 {
		return err
	}
	if n.fields, err = object.MergePatch(n.fields, s.Users.Amendable(patch)); err != nil {
		return err
	}
	return s.Users.Check(own(ctx, ""), n.fields, object.NewUUID())
}
