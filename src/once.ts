import { checkTask } from './base/options.js'
import type { Grant } from './core/grant.js'
import type { Lock } from './core/lock.js'
import type { LockOptions } from './core/lock-options.js'
import { withTaskBegan } from './base/errors.js'
import type { Runs } from './runs.js'
import { slotAt, type SlotOf, type Slots } from './slots.js'

/** The outcome of a task that is done once for a slot. */
export type Once<T, S extends Slots = Slots> =
  /** This call ran the task. */
  | { readonly ran: true; readonly slot: SlotOf<S>; readonly result: T }
  /** The task was already done for this slot, or for a later one. */
  | { readonly ran: false; readonly slot: SlotOf<S>; readonly result?: undefined }

/** See `Box.oncePer`. */
export async function oncePer<T, S extends Slots>(
  lock: Lock,
  runs: Runs,
  name: string,
  slots: S,
  task: (grant: Grant, slot: SlotOf<S>) => T | Promise<T>,
  options: LockOptions | undefined,
): Promise<Once<T, S>> {
  // The `taskBegan` of an error; undefined for the errors of the task itself.
  let began: boolean | undefined = false
  try {
    checkTask('oncePer', task, 'oncePer(name, slots, task, options)')
    // Checks the slots before the wait for the lock.
    slotAt('slots', slots, Date.now())
    return await lock.run(async grant => {
      const run = await runs.present([name], 'slots', slots)
      const slot = run.slot as SlotOf<S>
      if (run.isDone) return { ran: false, slot }
      grant.assertHeld()
      began = undefined
      const result = await task(grant, slot)
      began = true
      await run.done()
      began = undefined
      return { ran: true, slot, result }
    }, options)
  } catch (error) {
    throw began === undefined ? error : withTaskBegan(error, began)
  }
}
