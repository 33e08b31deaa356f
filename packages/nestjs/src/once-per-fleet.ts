import { InvalidArgumentError, type Box, type LockOptions, type Slots } from 'signalbox'
import { underGrant } from './under-grant.js'

/** Options of {@link OncePerFleet}. */
export interface OncePerFleetOptions extends LockOptions {
  /** The name of the job, which all processes share; default: the names of the class and the method. */
  name?: string | undefined
}

/**
 * Runs a method once in the fleet for each slot, as `Box.oncePer` does. All processes call it, for example by `@Cron`
 * of `@nestjs/schedule`; in those that do not run it, the call returns when it is done. `@CurrentGrant()` and
 * `@CurrentSlot()` pass the grant and the slot to its parameters.
 *
 * ```ts
 * @Cron('0 3 * * *', { timeZone: 'UTC' })
 * @OncePerFleet('1d')
 * async report(): Promise<void> {}
 * ```
 * @throws the errors of `Box.oncePer`, from each call
 */
export function OncePerFleet(
  slots: Slots,
  { name, ...options }: OncePerFleetOptions = {},
): (
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<(...args: never[]) => Promise<void>>,
) => void {
  return underGrant('OncePerFleet', async ({ box, instance, name: method, run }) => {
    const job = name ?? defaultName(box, instance, method)
    await box.oncePer(job, slots, (grant, slot) => run({ grant, slot }), options)
  })
}

/** The class and method of each job that has no name of its own. */
const jobs = new WeakMap<Box, Map<string, readonly [constructor: object, method: string | symbol]>>()

/**
 * @throws InvalidArgumentError if another class has the same name, or another symbol the same description, because then
 * one job would keep the other from running.
 */
function defaultName(box: Box, { constructor }: object, method: string | symbol): string {
  const name = `${constructor.name}.${String(method)}`
  const known = jobs.get(box) ?? new Map<string, readonly [object, string | symbol]>()
  jobs.set(box, known)
  const [otherClass, otherMethod] = known.get(name) ?? [constructor, method]
  if (otherClass !== constructor || otherMethod !== method)
    throw new InvalidArgumentError(
      `two methods have a job ${name}: pass a name to @OncePerFleet of one of them`,
    )
  known.set(name, [constructor, method])
  return name
}
