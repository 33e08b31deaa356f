import { InvalidArgumentError } from './errors.js'

/**
 * Makes the methods of a class reject a call without their object, as after `const { run } = mutex`, with an error that
 * names the cause.
 */
export function needsReceiver({ prototype }: { readonly prototype: object }): void {
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    const method: unknown = property.value
    if (name === 'constructor' || typeof method !== 'function') continue
    const checked = function (this: unknown, ...values: unknown[]): unknown {
      if (this !== undefined) return Reflect.apply(method, this, values)
      throw new InvalidArgumentError(
        `${name} was called without its object: write object.${name}(…) instead of const { ${name} } = object`,
      )
    }
    Object.defineProperty(prototype, name, { ...property, value: checked })
  }
}
