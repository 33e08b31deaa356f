import type { LockRequest } from '../history.js'
import type { Operation } from './linearizable.js'

/**
 * Converts the requests for one key to operations on its lock, for {@link linearizable}. The state is the token that
 * holds the lock, if any, then a space, then the greatest token that was given.
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
    // The grant was lost, or its holder died. That takes effect at any time after the lock was last held.
    return [acquire, { from: heldUntil ?? granted, apply: release }]
  })
}
