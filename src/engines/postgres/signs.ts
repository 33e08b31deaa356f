import type { Alive, SignOutcome } from '../../engine/contract.js'
import type { Query } from './clients/sql-client.js'
import { rowName } from './names.js'
import type { Statements } from './statements.js'

/** The reply of `alive` of the schema. */
type Reply = readonly [due: readonly string[], next: number | null, lapsed: readonly string[]]

/**
 * Sends a sign of life. If requests ahead of these have expired, serves the keys and sends the sign again.
 * @param serve drops expired requests from the queues of these keys, and wakes the next ones.
 */
export async function sendSign(
  { session, requests }: Alive,
  query: Query,
  { alive }: Statements,
  serve: (keys: readonly string[]) => Promise<unknown>,
): Promise<SignOutcome> {
  const keys = new Map(
    requests.flatMap(({ claims }) => claims.map(({ key }) => [rowName('lock', key), key] as const)),
  )
  const ids = requests.map(({ id }) => id)
  const homes = new Set(requests.map(({ claims }) => rowName('lock', claims[0]!.key)))
  const values = alive.values({
    session,
    ids,
    homes: [...homes],
    names: [...keys.keys()],
  })
  const send = async (): Promise<Reply> => JSON.parse((await query(alive.text, values)) as string) as Reply
  let reply = await send()
  if (reply[2].length > 0) {
    await serve(reply[2].map(name => keys.get(name)!))
    reply = await send()
  }
  const [due, next] = reply
  return { due, next: next === null ? Infinity : Math.max(next, 0) }
}
