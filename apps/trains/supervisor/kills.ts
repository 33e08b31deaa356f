import type { Kill, PlannedKill } from './kill-plan.js'
import type { Slot } from './slot.js'

/** Kills workers as planned, in turn, each while it has messages in flight. */
export class Kills {
  readonly #planned: PlannedKill[]
  readonly done: Kill[] = []
  #turn = 0

  constructor(planned: readonly PlannedKill[]) {
    this.#planned = [...planned]
  }

  /** Cancels the kill of a worker that has finished all its messages. Another worker will be killed instead. */
  cancelIfIdle(slot: Slot): void {
    if (!slot.plannedKill || slot.killed || slot.inFlight > 0) return
    slot.process?.send({ kind: 'hold', holding: false })
    this.#planned.unshift(slot.plannedKill)
    slot.plannedKill = undefined
  }

  begin(slots: readonly Slot[], messagesDone: number): void {
    for (let next = this.#planned[0]; next && next.after <= messagesDone; next = this.#planned[0]) {
      const victim = this.#victim(slots)
      if (!victim) return
      this.#planned.shift()
      this.#turn = victim.number
      victim.plannedKill = next
      if (next.moment === 'at work') this.kill(victim, messagesDone, 0)
      else victim.process?.send({ kind: 'hold', holding: true })
    }
  }

  /** Kills a chosen worker. @param committed number of messages that the worker reported as committed. */
  kill(slot: Slot, messagesDone: number, committed: number): void {
    const { plannedKill, process } = slot
    if (!plannedKill || !process || slot.killed) return
    slot.killed = {
      worker: slot.number,
      pid: process.pid,
      moment: plannedKill.moment,
      afterMessages: messagesDone,
      inFlight: slot.inFlight,
      committed,
      redelivered: 0,
      alreadyApplied: 0,
    }
    process.kill()
  }

  /** Records that the process of a worker is gone, and which of its messages are delivered again. */
  gone(slot: Slot, redelivered: readonly number[]): void {
    const { plannedKill, killed } = slot
    slot.plannedKill = undefined
    slot.killed = undefined
    if (killed && redelivered.length > 0) {
      killed.redelivered = redelivered.length
      this.done.push(killed)
    } else if (plannedKill) {
      // The worker died by itself, or had already sent all its acknowledgements, so the kill is planned again.
      this.#planned.unshift(plannedKill)
    }
  }

  /** Returns the next worker in turn that is not already chosen and has at least half the load of the busiest one. */
  #victim(slots: readonly Slot[]): Slot | undefined {
    const inTurn = [...slots.slice(this.#turn), ...slots.slice(0, this.#turn)]
    const able = inTurn.filter(slot => slot.ready && slot.inFlight > 0 && !slot.plannedKill && !slot.draining)
    const most = Math.max(...able.map(load))
    return able.find(slot => load(slot) >= most / 2)
  }
}

function load(slot: Slot): number {
  return slot.inFlight + slot.waiting
}
