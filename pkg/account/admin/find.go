package admin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Bounds of a search for users.
const (
	maxQuery     = 256 // bytes
	maxWords     = 8
	maxCounted   = 16   // parts of which is read how many records have them
	maxCandidate = 5000 // records that a page reads to find users
	maxJudged    = 300  // users that a page reads to find those who have all words
	maxAtOnce    = 200  // records that are read at once
	atOnce       = 8    // users that are read at the same time
)

// countedTo are the limits of the records of a part that are counted: of all parts up to the first, and up to the next
// one only where each part has more.
var countedTo = []int{100, 1000, 6000}

// place is where a page of a search begins: after a record that has a part, in the store of idents or of users.
type place struct {
	Part  string `json:"p"`
	Word  string `json:"w"` // that has the part
	Users bool   `json:"u,omitempty"`
	After []byte `json:"a,omitempty"`
}

// ErrTooShort is in the error of a search without a part of a name or an address that has enough characters.
var ErrTooShort = errors.New("nothing in the query is long enough")

// Search returns a page of the users in whose names and addresses all words of a query are. Those that an address finds
// come first, in the order of the addresses, and then those that a name finds. next is where the next page begins; ""
// after the last one. A page may be short, or empty, and have a next one. Errors: Invalid, with ErrTooShort for words
// of one character.
func (s *Admin) Search(ctx context.Context, query, after string, limit int) (page []Account, next string, err error) {
	ctx = record.AsService(ctx, "")
	if len(query) > maxQuery {
		return nil, "", errs.New(errs.Invalid, "q: has more than %d bytes: write a part of a name or of an address",
			maxQuery)
	}
	words := strings.Fields(record.Folded(query))
	if len(words) > maxWords {
		return nil, "", errs.New(errs.Invalid, "q: has more than %d words: write fewer", maxWords)
	}
	at, err := s.begin(ctx, words, after)
	if err != nil {
		return nil, "", err
	}
	some, judged := limit, 0
	for read := 0; len(page) < limit && read < maxCandidate && judged < maxJudged; {
		found, err := s.candidates(ctx, at, some)
		if err != nil {
			return nil, "", err
		}
		read += len(found.Objects)
		before := len(page)
		accounts, n, err := s.judge(ctx, at, words, found.Objects)
		if err != nil {
			return nil, "", err
		}
		judged += n
		for i, a := range accounts {
			if a == nil {
				continue
			}
			page, at.After = append(page, *a), found.Positions[i]
			if len(page) == limit {
				return page, at.text(), nil
			}
		}
		if some = limit - len(page); len(page) == before {
			some = min(maxAtOnce, maxJudged-judged) // few of those that have the part have the words
		}
		if at.After = found.Next; at.After != nil {
			continue
		}
		if at.Users {
			return page, "", nil
		}
		at.Users = true
	}
	return page, at.text(), nil
}

func (at place) text() string {
	text, _ := json.Marshal(at) // texts and a flag
	return base64.RawURLEncoding.EncodeToString(text)
}

// begin returns where a page begins. The first one chooses the part that the fewest records have.
func (s *Admin) begin(ctx context.Context, words []string, after string) (at place, err error) {
	if after != "" {
		text, err := base64.RawURLEncoding.DecodeString(after)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil || !slices.Contains(words, at.Word) || !slices.Contains(record.PartsOf(at.Word), at.Part) {
			return at, errs.New(errs.Invalid, "after: invalid, or of another search; start again without it")
		}
		return at, nil
	}
	all := choices(words)
	if len(all) == 0 {
		return at, errs.Wrap(ErrTooShort, errs.Invalid, "q: write at least two characters of a name or an address")
	}
	at = all[0]
	for _, limit := range countedTo {
		fewest := limit
		for _, one := range all {
			n, err := s.having(ctx, one.Part, fewest)
			if err != nil {
				return at, err
			}
			if n < fewest {
				fewest, at = n, one
			}
		}
		if fewest < limit {
			break
		}
	}
	return at, nil
}

// choices returns the parts of words by which a search can begin: those that are found anywhere, or else beginnings.
func choices(words []string) (all []place) {
	var beginnings []place
	for _, word := range words {
		for _, part := range record.PartsOf(word) {
			if record.Anywhere(part) {
				all = append(all, place{Part: part, Word: word})
			} else {
				beginnings = append(beginnings, place{Part: part, Word: word})
			}
		}
	}
	if len(all) == 0 {
		all = beginnings
	}
	return all[:min(len(all), maxCounted)]
}

// having returns how many records have a part, at most limit.
func (s *Admin) having(ctx context.Context, part string, limit int) (int, error) {
	key := [][]byte{[]byte(part)}
	idents, err := store.CountByKey(ctx, s.DB.Idents.Store, store.ByKey{Index: record.IdentFinder, Equal: key}, limit)
	if err != nil || idents >= limit {
		return limit, err
	}
	users, err := store.CountByKey(ctx, s.DB.Users.Store, store.ByKey{Index: s.DB.Finder.Index().Name, Equal: key},
		limit-idents)
	return idents + users, err
}

// candidates returns records that have the part.
func (s *Admin) candidates(ctx context.Context, at place, limit int) (store.KeyPage, error) {
	q := store.ByKey{Index: record.IdentFinder, Equal: [][]byte{[]byte(at.Part)}, After: at.After, Limit: limit}
	if at.Users {
		q.Index = s.DB.Finder.Index().Name
		return store.ListByKey(ctx, s.DB.Users.Store, q)
	}
	return store.ListByKey(ctx, s.DB.Idents.Store, q)
}

// judge returns the users of records in whose texts all words are, nil for others, and how many users it has read. A
// user is found by one record alone: the first ident that has the word, or else the user's own.
func (s *Admin) judge(ctx context.Context, at place, words []string, all []store.Stored) (accounts []*Account, n int,
	err error) {
	accounts = make([]*Account, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, one := range all {
		texts := record.IdentTexts(one.Body)
		if at.Users {
			texts = s.DB.Finder.Texts(one.Body)
		}
		if !at.has(texts) {
			continue
		}
		n++
		group.Go(func() (err error) {
			accounts[i], err = s.found(ctx, at, words, one)
			return err
		})
	}
	return accounts, n, group.Wait()
}

// has reports whether a record is found by its texts. The index may lag.
func (at place) has(texts []string) bool {
	return contains(texts, at.Word) && slices.Contains(record.Parts(texts), at.Part)
}

func contains(texts []string, word string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(record.Folded(text), word) })
}

// found returns the user of a record that has the word; nil if another one of their records finds them, if they lack
// another word, or if they were deleted.
func (s *Admin) found(ctx context.Context, at place, words []string, one store.Stored) (*Account, error) {
	uuid := one.UUID
	if !at.Users {
		ident, err := s.DB.Idents.Of(one)
		if err != nil {
			return nil, err
		}
		uuid = ident.User
	}
	user, err := s.DB.Users.Read(ctx, uuid)
	if errors.Is(err, errs.NotFound) || errors.Is(err, errs.Invalid) { // an ident can be left of a registration
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	idents, err := s.identsOf(ctx, uuid)
	if err != nil {
		return nil, err
	}
	texts, first := s.DB.Finder.Texts(user.Body), ""
	for _, i := range idents {
		own := record.IdentTexts(i.Body)
		if texts = append(texts, own...); first == "" && at.has(own) {
			first = i.UUID
		}
	}
	if !at.Users && first != one.UUID || at.Users && first != "" {
		return nil, nil
	}
	if slices.ContainsFunc(words, func(word string) bool { return !contains(texts, word) }) {
		return nil, nil
	}
	return s.listed(ctx, user, idents)
}

// listed returns a user as lists show them.
func (s *Admin) listed(ctx context.Context, user record.User, idents []record.Ident) (*Account, error) {
	seen, err := s.Sessions.SeenByRules(user)
	if err != nil {
		return nil, err
	}
	a := s.accountOf(ctx, user, seen)
	a.Idents, a.Invitation = infosOf(idents), s.invitationOf(user, idents)
	return &a, nil
}

// List is Accounts with the idents of the users.
func (s *Admin) List(ctx context.Context, after []byte, limit int) (page []Account, next []byte, err error) {
	ctx = record.AsService(ctx, "")
	stored, next, err := s.DB.Users.Store.Scan(ctx, after, limit)
	if err != nil {
		return nil, nil, err
	}
	page = make([]Account, len(stored))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, one := range stored {
		group.Go(func() error {
			user, err := s.DB.Users.Of(one)
			if err != nil {
				return err
			}
			idents, err := s.identsOf(ctx, user.UUID)
			if err != nil {
				return err
			}
			a, err := s.listed(ctx, user, idents)
			if err == nil {
				page[i] = *a
			}
			return err
		})
	}
	return page, next, group.Wait()
}
