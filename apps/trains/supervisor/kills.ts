import type { Kill, PlannedKill } from './kill-plan.js'
import type { Slot } from './slot.js'

/** Kills workers as planned, one after another in turn, each while it has messages in flight. */
export class Kills {
  readonly #planned: PlannedKill[]
  readonly #done: Kill[] = []
  #turn = 0

  constructor(planned: readonly PlannedKill[]) {
    this.#planned = [...planned]
  }

  /** The kills that were executed. */
  get done(): readonly Kill[] {
    return this.#done
  }

  /** Spares a worker that has finished all it had before it could be killed: another one will be. */
  spareIdle(slot: Slot): void {
    if (!slot.doomed || slot.killed || slot.inFlight > 0) return
    slot.process?.send({ kind: 'hold', holding: false })
    this.#planned.unshift(slot.doomed)
    slot.doomed = undefined
  }

  /** Begins with the next kills that are due after a number of messages. */
  begin(slots: readonly Slot[], messagesDone: number): void {
    for (let next = this.#planned[0]; next && next.after <= messagesDone; next = this.#planned[0]) {
      const victim = this.#victim(slots)
      if (!victim) return
      this.#planned.shift()
      this.#turn = victim.number
      victim.doomed = next
      if (next.moment === 'at work') this.strike(victim, messagesDone, 0)
      else victim.process?.send({ kind: 'hold', holding: true })
    }
  }

  /** Kills a worker that was chosen; `committed` is how many messages it says it has committed since. */
  strike(slot: Slot, messagesDone: number, committed: number): void {
    const { doomed, process } = slot
    if (!doomed || !process || slot.killed) return
    slot.killed = {
      worker: slot.number,
      pid: process.pid,
      moment: doomed.moment,
      afterMessages: messagesDone,
      inFlight: slot.inFlight,
      committed,
      redelivered: 0,
      alreadyApplied: 0,
    }
    process.kill()
  }

  /** Notes that the process of a worker is gone, and which of its messages are to be delivered again. */
  gone(slot: Slot, redelivered: readonly number[]): void {
    const { doomed, killed } = slot
    slot.doomed = undefined
    slot.killed = undefined
    if (killed && redelivered.length > 0) {
      killed.redelivered = redelivered.length
      this.#done.push(killed)
      for (const sequence of redelivered) slot.redelivered.set(sequence, killed)
    } else if (doomed) {
      // It died before its time, or its last acknowledgements came after all: that was not what was planned.
      this.#planned.unshift(doomed)
    }
  }

  /** The next worker in turn that is not chosen already and has at least half as much to do as any. */
  #victim(slots: readonly Slot[]): Slot | undefined {
    const inTurn = [...slots.slice(this.#turn), ...slots.slice(0, this.#turn)]
    const able = inTurn.filter(slot => slot.ready && slot.inFlight > 0 && !slot.doomed && !slot.draining)
    const most = Math.max(...able.map(load))
    return able.find(slot => load(slot) >= most / 2)
  }
}

function load(slot: Slot): number {
  return slot.inFlight + slot.waiting
}
