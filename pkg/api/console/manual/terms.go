package manual

import (
	"strings"
	"sync"
)

// peers are terms of other products and of the web, and belfry's words for them. Each line is "term, term: words".
const peers = `
	collection, collections, table, class: store
	document, documents, record, records, row, rows, item, entity, node: object
	column, attribute: field property
	foreign key, join, joins, relation, relations, relationship, relational, reference, many to many, one to many, has many, belongs to, populate, include, nested, denormalize: mapping model copies refer expand
	subcollection: mapping model
	materialized view, view, aggregate, aggregation, count, sum: computed mapping aggregate
	webhook, webhooks, trigger, triggers, cloud function, cloud functions, edge function, hook, hooks, background job, worker, queue, cron, task: listener event
	before save, beforesave, before create, validation hook, middleware, pre save: interceptor
	hook, hooks, validate, validation, custom logic, business logic: interceptor schema
	bucket, buckets, storage, upload, uploads, attachment, attachments, image, images, picture, avatar, blob, media: file
	thumbnail, thumbnails, resize: image thumbnail
	realtime, real time, subscribe, subscription, websocket, websockets, onsnapshot, changefeed, change stream, push, socket: live event
	rls, row level security, acl, acls, permission, permissions, authorization, access control, security rule, security rules, api rule, role, roles, rbac, private data, own data: rule policy owner
	forbidden, 403, access denied: denied rule policy
	401, unauthorized: unauthenticated log
	404: found
	400, bad request: invalid
	409: conflict unique
	412, optimistic locking, etag, lost update, concurrency: precondition mismatch match tag
	429, throttle, rate limit, rate limiting: limit
	503, outage, down: unavailable
	magic link, passwordless, otp, one time code, email login: mail code log
	mfa, 2fa, totp, authenticator, two factor, multi factor: second factor
	webauthn, passkeys, face id, touch id, yubikey: passkey
	sso, saml, oidc, openid, social login, social, oauth, oauth2, sign in with, facebook, apple, gitlab, discord, azure, okta, keycloak: provider log
	identity provider, authorization server, third party app: application authorize
	sign in, signin, sign up, signup, login, logins, authenticate, authentication, register: log account user
	jwt, bearer, access token, refresh token, session cookie: token session cookie
	forgot password, reset password, password reset, change password: recovery password
	verify email, email verification, confirm email: address confirm mail
	organization, organizations, tenant, tenants, multi tenant, group, groups, workspace: team
	service account, service key, anon key, secret key, api token, machine to machine: api key
	delete account, gdpr, export my data, erase: deletion export account
	admin ui, dashboard, studio, admin panel: console admin
	superuser, root user, first admin: admin
	sql, where, query, queries, filter, filtering, select, order by, sort, sorting: list filter sort
	pagination, paginate, paging, cursor, infinite scroll, limit offset: page list cursor
	full text, fulltext, fuzzy, typesense, algolia, elasticsearch, autocomplete: search word
	index, slow query, explain: index plan list
	migration, migrations, alter table, add column, rename field, schema change: change model schema fill
	schema, type, types, typescript, generate types, sdk, client library: schema typescript openapi
	swagger, api docs, rest, graphql: openapi http
	unique constraint, unique index, duplicate, duplicates, username: unique value
	transaction, transactions, atomic, batch write, bulk: batch atomic
	upsert, idempotent, retry, double submit: idempotency key put
	soft delete, trash, undelete, undo, history, audit log, versioning: history event tombstone
	cascade, on delete: cascade deletion
	docker, container, vps, systemd, host, self host, hosting, install: deploy
	helm, k8s, kubectl, pod: kubernetes
	scale, scaling, horizontal, high availability, ha, replica, replicas, failover, load balancer: cluster
	https, ssl, certificate, lets encrypt, certbot: tls certificate
	nginx, caddy, traefik, apache, cloudflare, reverse proxy, cdn: proxy
	cross origin, preflight, allowed origin: cors origin
	env, environment variable, environment variables, dotenv, secret, secrets, vault: configuration environment
	config, settings, options, setting: configuration key
	backup, backups, restore, dump, snapshot, disaster recovery, pitr: back restore
	import, csv, load data, seed, move data, export: import
	prometheus, grafana, alert, observability, monitoring, logging, logs, opentelemetry, tracing: monitor metric
	upgrade, update version, new version, breaking change: upgrade compatibility
	cli, command line, flag: command
	mongo, mongodb, postgres, postgresql, mysql, sqlite, dynamodb, s3, minio, database: backend
	late, stale, sync, in sync, out of sync, outdated, eventual consistency, consistency, delay: copy mapping verify
	dlq, poison, failed event, stuck: dead letter
	email, smtp, sendgrid, mailer, ses: mail
	spa, static, frontend, html, website, hosting: site static page
	error, errors, error code: error problem
	quota, quotas, maximum, max size, size limit, limits: limit
	firebase, firestore, cloud firestore: firebase
	pocketbase: pocketbase
	supabase: supabase
	parse, back4app: parse`

// synonym is a phrase, in stems, and what it means in belfry.
type synonym struct{ phrase, means []string }

// synonyms are the lines of peers by the first word of each term.
var synonyms = sync.OnceValue(func() map[string][]synonym {
	all := map[string][]synonym{}
	for line := range strings.Lines(peers) {
		terms, means, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		for term := range strings.SplitSeq(terms, ",") {
			if phrase := Words(term); len(phrase) > 0 {
				all[phrase[0]] = append(all[phrase[0]], synonym{phrase, Words(means)})
			}
		}
	}
	return all
})
