import { shown } from '../../base/errors.js'
import type { Purpose } from './state-engine.js'

/** Maximum number of keys that an error names; it counts the others. */
const MAX_NAMED = 3

/** Says what an operation does for its caller, as errors name it after "could not": `lock "invoice:42"`. */
export function purposeText(purpose: Purpose): string {
  switch (purpose.type) {
    case 'join':
      return 'open a box'
    case 'leave':
      return 'close a box'
    case 'reservePermits':
      return 'get permits of a limiter'
    case 'limiters':
      return 'list the limiters'
    case 'enqueue':
    case 'checkIn':
      return `lock ${claimed(purpose)}`
    case 'alive':
      return `keep the requests for ${named(purpose.requests.flatMap(({ claims }) => keysOf(claims)))} alive`
    case 'cancel':
      return `withdraw the request for ${claimed(purpose)}`
    case 'renew':
    case 'extendOrYield':
      return `extend the lock of ${claimed(purpose)}`
    case 'release':
      return `release ${claimed(purpose)}`
    case 'downgrade':
      return `downgrade the lock of ${claimed(purpose)}`
    case 'forceRelease':
      return `release ${shown(purpose.key)} by force`
    case 'revoke':
      return `revoke the session ${shown(purpose.session)}`
    case 'sweepExpired':
      return `remove the expired requests for ${named(purpose.keys)}`
    case 'inspect':
      return purpose.exact ? `inspect ${shown(purpose.prefix)}` : `list the locks${beginning(purpose.prefix)}`
    case 'list':
      return `list the store keys${beginning(purpose.prefix)}`
    case 'read':
      return `read ${named([...purpose.keys, ...keysOf(purpose.ids)])}`
    case 'commit': {
      const { writes, record, expect } = purpose
      if (writes.length + record.length > 0) return `write ${named(keysOf([...writes, ...record]))}`
      return expect.length > 0 ? `check the version of ${named(keysOf(expect))}` : 'end a transaction'
    }
    case 'watch':
      return `watch ${shown(purpose.key)}`
    case 'unwatch':
      return `stop watching ${shown(purpose.key)}`
  }
}

interface Keyed {
  readonly key: string
}

function keysOf(parts: readonly Keyed[]): readonly string[] {
  return parts.map(({ key }) => key)
}

function claimed({ request }: { readonly request: { readonly claims: readonly Keyed[] } }): string {
  return named(keysOf(request.claims))
}

function named(keys: readonly string[]): string {
  const all = [...new Set(keys)]
  const others = all.length - MAX_NAMED
  const list = all.slice(0, MAX_NAMED).map(shown).join(', ')
  return others > 0 ? `${list} and ${others} more` : list
}

function beginning(prefix: string): string {
  return prefix === '' ? '' : ` that begin with ${shown(prefix)}`
}
