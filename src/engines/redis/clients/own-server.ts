import type { Clock } from '../../../clock.js'
import type { Connect, Connection, Patience } from './connection.js'
import { LastingConnection } from './lasting-connection.js'
import type { LinkListener } from './redis-link.js'
import { ServerLink } from './server-link.js'
import { Subscriptions } from './subscriptions.js'

/** What a link to a server over connections of its own is made of. */
export interface OwnServerParts {
  readonly name: string
  readonly connect: Connect
  readonly listener: LinkListener
  readonly clock: Clock
  readonly patience: Patience
}

/** A link to a server: one connection for commands, and one for messages from the first channel on. */
export function ownServer({ name, connect, listener, clock, patience }: OwnServerParts): ServerLink {
  const shared = { name, connect, clock, patience }
  return new ServerLink(
    name,
    new LastingConnection({ ...shared, prepare: seeThatItServes }),
    new Subscriptions({ ...shared, sharded: false, listener }),
  )
}

/** Rejects when the server wants a password, still loads its data, or has lost its master. */
export async function seeThatItServes(connection: Connection): Promise<void> {
  await connection.send(['PING'])
}
