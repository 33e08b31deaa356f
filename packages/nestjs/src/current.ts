import 'reflect-metadata'
import type { Grant, NamedSlot, Slot } from 'signalbox'

/** The grant and the slot under which a decorated method runs. */
export interface Current {
  readonly grant: Grant
  readonly slot?: Slot | NamedSlot
}

const PARAMETERS = Symbol('signalbox:parameters')

/** The parameters of a method that get a part of {@link Current}, by their place. */
type Parameters = ReadonlyMap<number, keyof Current>

/**
 * Passes the grant to a method with `@Locked` or `@OncePerFleet`, in place of the argument of its caller:
 *
 * ```ts
 * @Locked((id: string) => `invoice:${id}`)
 * async pay(id: string, @CurrentGrant() grant?: Grant): Promise<void> {}
 * ```
 */
export function CurrentGrant(): ParameterDecorator {
  return parameter('grant')
}

/**
 * Passes the slot, a `Slot` or `NamedSlot` of Signalbox, to a method with `@OncePerFleet`, in place of the argument of
 * its caller.
 */
export function CurrentSlot(): ParameterDecorator {
  return parameter('slot')
}

function parameter(part: keyof Current): ParameterDecorator {
  return (target, name, index) => {
    const parameters = new Map(parametersOf(target, name!)).set(index, part)
    Reflect.defineMetadata(PARAMETERS, parameters, target, name!)
  }
}

/** Returns the parameters of a method. The compiler applies the decorators of parameters first. */
export function parametersOf(target: object, name: string | symbol): Parameters {
  return (Reflect.getOwnMetadata(PARAMETERS, target, name) as Parameters | undefined) ?? new Map()
}

/** Returns the arguments with the current values in the places of these parameters. */
export function withCurrent(args: readonly unknown[], parameters: Parameters, current: Current): unknown[] {
  const all = [...args]
  for (const [index, part] of parameters) all[index] = current[part]
  return all
}
