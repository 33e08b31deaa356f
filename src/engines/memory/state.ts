import type { Member, Versioned } from '../engine.js'
import type { Entry, Request, TableState } from '../../locks/table.js'
import type { StoreState } from '../../store/commit.js'

const ABSENT: Versioned = { value: undefined, version: 0 }

/** The state of the lock table and of the store, in variables. */
export class MemoryState implements TableState, StoreState {
  readonly #queues = new Map<string, Entry[]>()
  readonly #requests = new Map<string, Request>()
  readonly #members = new Map<string, Member>()
  readonly #values = new Map<string, Versioned>()
  /** By key, then by id: until when it is kept. */
  readonly #ids = new Map<string, Map<string, number>>()
  #number: number
  #version: number

  /**
   * @param start where numbers begin. Microseconds of the wall clock make tokens rise over a restart of the process,
   * too, and leave the ten bits for turns within a signed 64-bit number.
   */
  constructor(start: number) {
    this.#number = start
    this.#version = start
  }

  queue(key: string): readonly Entry[] | undefined {
    return this.#queues.get(key)
  }

  request(id: string): Request | undefined {
    return this.#requests.get(id)
  }

  append(request: Request): void {
    this.#requests.set(request.id, request)
    for (const claim of request.claims) {
      const queue = this.#queues.get(claim.key)
      if (queue) queue.push({ request, claim })
      else this.#queues.set(claim.key, [{ request, claim }])
    }
  }

  remove(request: Request): void {
    this.#requests.delete(request.id)
    for (const { key } of request.claims) {
      const queue = this.#queues.get(key)!
      if (queue.length === 1) this.#queues.delete(key)
      else
        queue.splice(
          queue.findIndex(entry => entry.request === request),
          1,
        )
    }
  }

  changed(): void {
    // The requests handed out are the state itself.
  }

  nextNumber(): number {
    return ++this.#number
  }

  requestsOf(session: string): Request[] {
    return [...this.#requests.values()].filter(request => request.session === session)
  }

  keys(prefix: string): string[] {
    return [...this.#queues.keys()].filter(key => key.startsWith(prefix))
  }

  member(session: string): Member | undefined {
    return this.#members.get(session)
  }

  join(member: Member): void {
    this.#members.set(member.session, member)
  }

  leave(session: string): void {
    this.#members.delete(session)
  }

  get(key: string): Versioned {
    return this.#values.get(key) ?? ABSENT
  }

  put(key: string, value: string | undefined, version: number): void {
    if (value === undefined) this.#values.delete(key)
    else this.#values.set(key, { value, version })
  }

  nextVersion(): number {
    return ++this.#version
  }

  recorded(key: string, id: string): boolean {
    return this.#ids.get(key)?.has(id) ?? false
  }

  record(key: string, id: string, until: number): void {
    const ids = this.#ids.get(key)
    if (ids) ids.set(id, until)
    else this.#ids.set(key, new Map([[id, until]]))
  }

  /** Forgets the ids whose time is over. */
  forgetIds(now: number): void {
    for (const [key, ids] of this.#ids) {
      for (const [id, until] of ids) if (until <= now) ids.delete(id)
      if (ids.size === 0) this.#ids.delete(key)
    }
  }
}
