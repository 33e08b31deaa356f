import type { Clock } from '../../../clock.js'
import { UnavailableError } from '../../../errors.js'
import { pause } from '../../../pause.js'
import type { Patience, Reply } from './connection.js'
import { sentInVain, unanswered, unreachable, unsent } from './failures.js'
import type { ClientStatus, GivenServer } from './given-client.js'
import { InFlight } from './in-flight.js'
import type { ServerCommands } from './redis-link.js'

/** How often a client that is being connected is looked at: milliseconds. */
const LOOK = 10

/** What commands over a given client are made of. */
export interface GivenCommandsParts {
  readonly name: string
  readonly client: GivenServer
  readonly clock: Clock
  readonly patience: Patience
}

/**
 * Commands over a given client, which connects and reconnects as its owner has told it. Only what the client could send
 * at once is handed to it, so nothing waits in its own queue; what it does after that is not known here, so every
 * failure but an answer is Indeterminate.
 */
export class GivenCommands implements ServerCommands {
  readonly #parts: GivenCommandsParts
  readonly #inFlight: InFlight

  constructor(parts: GivenCommandsParts) {
    const { name, patience } = parts
    this.#parts = parts
    this.#inFlight = new InFlight(parts.clock, patience.answer, {
      busy: () => undefined,
      idle: () => undefined,
      late: () => unanswered(name, patience.answer),
    })
  }

  get epoch(): number {
    return this.#parts.client.epoch
  }

  get isOver(): boolean {
    return this.#parts.client.status === 'closed'
  }

  async connect(): Promise<void> {
    const { client, name } = this.#parts
    await untilReady(client, this.#parts)
    try {
      await this.send(['PING'])
    } catch (error) {
      throw error instanceof UnavailableError ? error : unreachable(name, error)
    }
  }

  send(...commands: readonly (readonly string[])[]): Promise<Reply> {
    const { client, name } = this.#parts
    if (client.status !== 'ready') return unsent(notReady(name, client.status))
    for (const command of commands.slice(0, -1)) client.send(command).catch(() => undefined)
    return this.#inFlight.follow(client.send(commands.at(-1)!), error => sentInVain(name, error))
  }

  close(): void {
    // The connection is the client's.
  }
}

/**
 * Waits for a client to be ready.
 * @throws UnavailableError when it is closed, or not ready in time
 */
export async function untilReady(
  client: { readonly status: ClientStatus; wake(): void },
  { clock, name, patience }: { name: string; clock: Clock; patience: Patience },
): Promise<void> {
  const deadline = clock.now() + patience.connect
  for (let { status } = client; status !== 'ready'; status = client.status) {
    if (status === 'idle') client.wake()
    if (status === 'closed' || clock.now() > deadline) throw notReady(name, status)
    await pause(LOOK, clock)
  }
}

function notReady(name: string, status: ClientStatus): UnavailableError {
  const how = status === 'closed' ? 'not connected: connect it first' : 'connecting'
  return unreachable(name, new Error(`the given client is ${how}`))
}
