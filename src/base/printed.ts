type Inspect = (value: unknown, options: object) => string

/**
 * Defines the output of `console.log` and `JSON.stringify` for the objects of a class: these facts, which are JSON
 * values without secrets, instead of the objects' internals.
 */
export function printedAs<T extends object>(
  { prototype }: { readonly prototype: T },
  name: string,
  factsOf: (object: T) => object,
): void {
  const hidden = { configurable: true, writable: true, enumerable: false }
  const toJSON = function (this: T): object {
    return factsOf(this)
  }
  const inspected = function (this: T, _: number, options: object, inspect: Inspect): string {
    // The prototype itself has no facts.
    return this === prototype ? name : `${name} ${inspect(factsOf(this), options)}`
  }
  Object.defineProperty(prototype, 'toJSON', { ...hidden, value: toJSON })
  Object.defineProperty(prototype, Symbol.for('nodejs.util.inspect.custom'), { ...hidden, value: inspected })
}
