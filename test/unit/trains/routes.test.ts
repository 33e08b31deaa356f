import { describe, expect, test } from 'vitest'
import type { Message } from '../../../apps/trains/messages/message.js'
import { Routes } from '../../../apps/trains/supervisor/routes.js'

interface Placed extends Message {
  readonly place: string | undefined
}

function placeOf(message: Message): string | undefined {
  return (message as Placed).place
}

/**
 * Workers that receive messages by routes. The workers finish in any order, but each one finishes its messages in
 * order.
 */
class Crew {
  readonly #routes: Routes
  readonly #queues: Message[][]
  /** Messages in the order in which workers finished them. */
  readonly finished: Message[] = []
  /** By message: the worker that received it. */
  readonly workers = new Map<string, number>()
  #sequence = 0

  constructor(workers: number) {
    this.#routes = new Routes(workers, placeOf)
    this.#queues = Array.from({ length: workers }, () => [])
  }

  get busy(): boolean {
    return this.#queues.some(queue => queue.length > 0)
  }

  add(message: Message): void {
    const worker = this.#routes.add({ sequence: this.#sequence++, message })
    if (worker !== undefined) this.#give(worker, message)
  }

  /** Finishes the oldest message of a worker. */
  finish(worker: number): void {
    const message = this.#queues[worker]!.shift()
    if (!message) return
    this.finished.push(message)
    const route = this.#routes.done(message)
    for (const { message: next } of route?.messages ?? []) this.#give(route!.worker, next)
  }

  finishAll(): void {
    while (this.busy) for (const worker of this.#queues.keys()) this.finish(worker)
  }

  #give(worker: number, message: Message): void {
    this.workers.set(message.id, worker)
    this.#queues[worker]!.push(message)
  }
}

/** Yields moves of trains up and down a line of places. All trains move one step in turn. */
function* alongALine(places: number, trains: number, steps: number): Generator<Placed> {
  const cycle = 2 * (places - 1)
  for (let step = 0; step < steps; step++) {
    for (let train = 0; train < trains; train++) {
      const at = (train * 7 + step) % cycle
      yield {
        id: `${train}-${step}`,
        type: 'move',
        train: `T${train}`,
        place: `L${Math.min(at, cycle - at)}`,
      }
    }
  }
}

describe('routes', () => {
  test('assign each place to one worker, mostly with its neighbours, and give all workers about the same work', () => {
    const crew = new Crew(4)
    const messages = [...alongALine(40, 30, 400)]
    for (const [index, message] of messages.entries()) {
      crew.add(message)
      // The routes know the earlier place of a train only while it has messages under way.
      if (index % 256 === 255) crew.finishAll()
    }
    crew.finishAll()
    const late = messages.slice(6000)
    const counts = [0, 0, 0, 0]
    const ofPlace = new Map<string, Set<number>>()
    let changes = 0
    for (const [index, { id, place }] of late.entries()) {
      const worker = crew.workers.get(id)!
      counts[worker] = counts[worker]! + 1
      ofPlace.set(place!, (ofPlace.get(place!) ?? new Set()).add(worker))
      const before = late[index - 30]
      if (before && crew.workers.get(before.id) !== worker) changes++
    }
    expect(Math.min(...counts)).toBeGreaterThan((0.6 * late.length) / 4)
    expect([...ofPlace.values()].every(workers => workers.size === 1)).toBe(true)
    // A train that runs from end to end crosses three borders in 39 steps.
    expect(changes / late.length).toBeLessThan(0.1)
  })
})
