import { create } from './create.js'
import { deletion } from './delete.js'
import { kindOf, name, type Field } from './field.js'
import { InvalidMessageError, type Message } from './message.js'
import type { MessageType } from './message-type.js'
import { move } from './move.js'

/** The message types of the train tracker. */
export const standardTypes: readonly MessageType[] = [create, move, deletion]

export class MessageRegistry {
  readonly #types = new Map<string, MessageType>()

  /** @throws Error if two types have the same name. */
  constructor(types: readonly MessageType[]) {
    for (const type of types) {
      if (this.#types.has(type.type)) throw new Error(`There are two message types called '${type.type}'.`)
      this.#types.set(type.type, type)
    }
  }

  /** @throws InvalidMessageError if a field is invalid. */
  validate(incoming: unknown): Message {
    if (typeof incoming !== 'object' || incoming === null || Array.isArray(incoming)) {
      throw new InvalidMessageError(`a message must be an object, got ${kindOf(incoming)}`, 'not an object')
    }
    const fields = incoming as Readonly<Record<string, unknown>>
    const id = checked('id', name, fields)
    const type = this.typeOf({ type: checked('type', name, fields) })
    const message: Record<string, unknown> = { id, type: type.type }
    for (const [field, check] of Object.entries<Field<unknown>>(type.fields)) {
      message[field] = checked(field, check, fields)
    }
    return message as unknown as Message
  }

  placeOf(message: Message): string | undefined {
    return this.#types.get(message.type)?.place?.(message)
  }

  /** Returns the type of a message. @throws InvalidMessageError if the type is unknown. */
  typeOf({ type }: Pick<Message, 'type'>): MessageType {
    const found = this.#types.get(type)
    if (found) return found
    const known = [...this.#types.keys()].join(', ')
    throw new InvalidMessageError(`"type" must be one of ${known}, got ${kindOf(type)}`, 'type')
  }
}

export const registry = new MessageRegistry(standardTypes)

function checked<Value>(
  field: string,
  check: Field<Value>,
  fields: Readonly<Record<string, unknown>>,
): Value {
  const result = check(Object.hasOwn(fields, field) ? fields[field] : undefined)
  if ('refused' in result) throw new InvalidMessageError(`"${field}" ${result.refused}`, field)
  return result.value
}
