import 'reflect-metadata'
import { Inject } from '@nestjs/common'
import { InvalidArgumentError, type Box } from 'signalbox'
import { parametersOf, withCurrent, type Current } from './current.js'
import { BOX } from './inject-box.js'

/** A call of a decorated method. */
export interface Call {
  readonly box: Box
  readonly instance: object
  readonly name: string | symbol
  readonly args: readonly unknown[]
  /** Calls the method itself. */
  readonly run: (current: Current) => Promise<unknown>
}

/**
 * Returns a decorator that replaces a method by one that calls `acquire`. Nest injects the box into each instance as a
 * property, so scopes and inheritance work as for other dependencies. Metadata of decorators below this one are copied.
 * @param decorator its name, for messages.
 */
export function underGrant(decorator: string, acquire: (call: Call) => Promise<unknown>): MethodDecorator {
  return (target, name, descriptor) => {
    const method: unknown = (descriptor as PropertyDescriptor | undefined)?.value
    if (typeof method !== 'function' || typeof target === 'function')
      throw new InvalidArgumentError(`@${decorator} decorates methods of instances, unlike ${String(name)}`)
    const parameters = parametersOf(target, name)
    // A computed name, because others identify a handler by its name, such as the guard of @nestjs/throttler.
    const { [name as string]: wrapper } = {
      async [name as string](this: { [BOX]?: Box }, ...args: unknown[]): Promise<unknown> {
        const box = this[BOX]
        if (!box) {
          const place = `${this.constructor.name}.${String(name)}`
          throw new InvalidArgumentError(
            `@${decorator} of ${place} has no box: Nest must create the instance, and call it after its constructor`,
          )
        }
        const run = async (current: Current): Promise<unknown> =>
          (await method.apply(this, withCurrent(args, parameters, current))) as unknown
        return acquire({ box, instance: this, name, args, run })
      },
    }
    for (const key of Reflect.getOwnMetadataKeys(method) as unknown[])
      Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), wrapper!)
    // Once for a class and those that inherit from it.
    if (!Reflect.hasMetadata(BOX, target)) {
      Inject(BOX)(target, BOX)
      Reflect.defineMetadata(BOX, true, target)
    }
    descriptor.value = wrapper as never
  }
}
