import type { LockOptions } from 'signalbox'
import { underGrant } from './under-grant.js'

/** The keys of a lock, or a function that returns them for the arguments of a call. */
export type LockKeys =
  | string
  | readonly string[]
  // A parameter without a type is of any type, so that it fits the method.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  | ((this: never, ...args: any[]) => string | readonly string[])

/** Fails to compile for a function of keys that takes other arguments than the method. */
type Fitting<Keys extends LockKeys, Method extends (...args: never[]) => unknown> =
  OmitThisParameter<Keys> extends string | readonly string[] | ((...args: Parameters<Method>) => unknown)
    ? unknown
    : 'the function of keys takes other arguments than the method'

/**
 * Runs each call of a method under the mutex of these keys, in all processes. The method must return a promise.
 * `@CurrentGrant()` passes the grant to one of its parameters.
 *
 * ```ts
 * @Locked((id: string) => `invoice:${id}`, { wait: '5s' })
 * async pay(id: string): Promise<void> {}
 * ```
 * @param keys a function is called with the arguments of the method, and with its `this`.
 * @throws the errors of `Lock.run` of Signalbox, from each call
 */
export function Locked<const Keys extends LockKeys>(
  keys: Keys,
  options?: LockOptions,
): <Method extends (...args: never[]) => Promise<unknown>>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<Method> & Fitting<Keys, Method>,
) => void {
  return underGrant('Locked', async ({ box, instance, args, run }) => {
    const given: LockKeys = keys
    const made = typeof given === 'function' ? given.apply(instance as never, args as never[]) : given
    return box.mutex(...[made].flat()).run(grant => run({ grant }), options)
  }) as ReturnType<typeof Locked<Keys>>
}
