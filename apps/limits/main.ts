#!/usr/bin/env node
import { limits } from './command.js'

process.exitCode = await limits(process.argv.slice(2))
