import type { LockRequest } from '../history.js'
import type { Operation } from './linearizable.js'

/**
 * What the requests of one key do to its lock, for {@link linearizable}. The state names the token that holds it, or
 * nothing, and after a blank the greatest that was given.
 */
export function lockOperations(requests: readonly LockRequest[]): Operation<string>[] {
  return requests.flatMap(({ asked, granted, token, heldUntil, leaving, left, end }) => {
    if (granted === undefined || token === undefined) return []
    const acquire: Operation<string> = {
      from: asked,
      until: granted,
      apply: state => {
        const [holder, last] = state.split(' ')
        return holder === '' && BigInt(token) > BigInt(last!) ? `${token} ${token}` : undefined
      },
    }
    const release = (state: string): string | undefined => {
      const [holder, last] = state.split(' ')
      return holder === token ? ` ${last!}` : undefined
    }
    if (end === 'released') return [acquire, { from: leaving!, until: left!, apply: release }]
    // It was lost, or its holder died: that happens by itself, at any time after it was last held.
    return [acquire, { from: heldUntil ?? granted, apply: release }]
  })
}
