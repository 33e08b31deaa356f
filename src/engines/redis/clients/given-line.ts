import type { Clock } from '../../../clock.js'
import { UnavailableError } from '../../../errors.js'
import type { CommandLine } from './command-line.js'
import type { Patience } from './connection.js'
import { sentInVain, unanswered, unreachable, unsent } from './failures.js'
import type { GivenServer, Standing } from './given-client.js'
import { InFlight } from './in-flight.js'
import type { Reply } from './command-line.js'

/** How often a client that is being connected is looked at: milliseconds. */
const LOOK = 10

/** What a line over a client of the caller's is made of. */
export interface GivenLineParts {
  readonly name: string
  readonly client: GivenServer
  readonly clock: Clock
  readonly patience: Patience
}

/**
 * Commands over a client of the caller's, which connects and reconnects as the caller has told it. Only what the client
 * could send at once is handed to it, so nothing waits in its own queue; what it does after that is not known here, so
 * every failure but an answer is Indeterminate.
 */
export class GivenLine implements CommandLine {
  readonly #parts: GivenLineParts
  readonly #inFlight: InFlight

  constructor(parts: GivenLineParts) {
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
    if (client.standing !== 'ready') return unsent(notReady(name, client.standing))
    for (const command of commands.slice(0, -1)) client.send(command).catch(() => undefined)
    return this.#inFlight.follow(client.send(commands.at(-1)!), error => sentInVain(name, error))
  }

  close(): void {
    // Everything belongs to the caller.
  }
}

/**
 * Waits for a client to be ready.
 * @throws UnavailableError when it is closed, or not ready in time
 */
export async function untilReady(
  client: { readonly standing: Standing; wake(): void },
  { clock, name, patience }: { name: string; clock: Clock; patience: Patience },
): Promise<void> {
  const deadline = clock.now() + patience.connect
  for (let { standing } = client; standing !== 'ready'; standing = client.standing) {
    if (standing === 'asleep') client.wake()
    if (standing === 'closed' || clock.now() > deadline) throw notReady(name, standing)
    await new Promise<void>(resolve => clock.after(LOOK, resolve, true))
  }
}

function notReady(name: string, standing: Standing): UnavailableError {
  const how = standing === 'closed' ? 'not connected: connect it first' : 'connecting'
  return unreachable(name, new Error(`the given client is ${how}`))
}
