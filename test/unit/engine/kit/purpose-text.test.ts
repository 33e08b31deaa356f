import { expect, test } from 'vitest'
import { purposeText } from '../../../../src/engine/kit/purpose-text.js'
import type { Purpose } from '../../../../src/engine/kit/state-engine.js'

const claims = ['a', 'b'].map(key => ({ key, mode: 'exclusive' }) as const)
const request = { id: 'r', session: 's', claims, label: undefined }
const terms = { lease: 1, wait: 1 }
const nothing = { guard: undefined, expect: [], writes: [], record: [], retention: 0, release: false }

const texts: readonly (readonly [Purpose, string])[] = [
  [{ type: 'reservePermits' }, 'get permits of a limiter'],
  [{ type: 'enqueue', request, ...terms }, 'lock "a", "b"'],
  [{ type: 'cancel', request }, 'withdraw the request for "a", "b"'],
  [{ type: 'renew', request, number: 1, lease: 1 }, 'extend the lock of "a", "b"'],
  [{ type: 'extendOrYield', request, number: 1, next: request, ...terms }, 'extend the lock of "a", "b"'],
  [{ type: 'release', request, number: 1 }, 'release "a", "b"'],
  [{ type: 'forceRelease', key: 'a', number: 1 }, 'release "a" by force'],
  [{ type: 'inspect', prefix: 'a', exact: true }, 'inspect "a"'],
  [{ type: 'inspect', prefix: '' }, 'list the locks'],
  [{ type: 'list', prefix: 's/', after: '', limit: 1 }, 'list the store keys that begin with "s/"'],
  [{ type: 'read', keys: ['a', 'b', 'c', 'd', 'e'], ids: [] }, 'read "a", "b", "c" and 2 more'],
  [
    { type: 'commit', ...nothing, writes: [{ key: 'a', value: '1' }], record: [{ key: 'a', id: '1' }] },
    'write "a"',
  ],
  [{ type: 'commit', ...nothing, release: true }, 'end a transaction'],
  [{ type: 'watch', session: 's', key: 'a' }, 'watch "a"'],
  [{ type: 'leave' }, 'close a box'],
  [{ type: 'limiters' }, 'list the limiters'],
  [{ type: 'downgrade', request, number: 1 }, 'downgrade the lock of "a", "b"'],
  [{ type: 'revoke', session: 's' }, 'revoke the session "s"'],
  [{ type: 'sweepExpired', keys: ['a'] }, 'remove the expired requests for "a"'],
  [{ type: 'commit', ...nothing, expect: [{ key: 'a', version: 1 }] }, 'check the version of "a"'],
  [{ type: 'unwatch', session: 's', key: 'a' }, 'stop watching "a"'],
]

test.each(texts)('errors about %o say "could not %s"', (purpose, text) => {
  expect(purposeText(purpose)).toBe(text)
})
