/* Carries out a plan of the daemon: reads it, has its steps run, reports the results, and prints the final answer.
 * It knows no policy. The daemon has determined what each step runs, and decides what the results mean. If the daemon
 * has ended by then, Python decides from the same results: a step that has begun is never run again. */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- reading: fields that each end with a NUL ---- */

struct fields { char *at, *end; bool valid; };

static char *next(struct fields *fields)
{
    char *field = fields->at;
    while (fields->at < fields->end && *fields->at)
        fields->at++;
    fields->valid = fields->valid && fields->at < fields->end;
    fields->at += fields->valid;
    return fields->valid ? field : (char *)"";
}

static uint64_t next_number(struct fields *fields, uint64_t max)
{
    uint64_t number = 0;
    const char *field = next(fields);
    fields->valid = fields->valid && read_number(field, strlen(field), max, &number);
    return fields->valid ? number : 0;
}

/* Read a count and as many fields, into an array that ends with NULL. */
static char **next_list(struct fields *fields, size_t *count)
{
    *count = (size_t)next_number(fields, (uint64_t)(fields->end - fields->at));
    char **list = fields->valid ? map_memory((*count + 1) * sizeof *list) : NULL;
    fields->valid = fields->valid && list;
    for (size_t i = 0; fields->valid && i < *count; i++)
        list[i] = next(fields);
    return list;
}

static void read_step(struct fields *fields, struct step *step)
{
    size_t words;
    step->ends_on = next(fields);
    step->timeout = next_number(fields, MAX_WAIT);
    step->folder = next(fields);
    step->env = next_list(fields, &step->env_count);
    step->argv = next_list(fields, &words);
    fields->valid = fields->valid && words > 0 && step->argv[0][0];
}

/* Parse a plan in place. `docs/architecture.md` has the format; src/fairlead/execute/_native.py writes it. */
bool read_plan(struct bytes from, struct bytes payload, struct plan *plan)
{
    struct fields fields = {from.at, from.at + from.size, true};
    const char *version = next(&fields), *order = next(&fields);
    if (!fields.valid || version[0] != '1' || version[1] || !(order[0] == 's' || order[0] == 'p'))
        return false;
    plan->parallel = order[0] == 'p';
    size_t input = (size_t)next_number(&fields, from.size);
    plan->removed = next_list(&fields, &plan->removed_count);
    plan->env = next_list(&fields, &plan->env_count);
    plan->count = (size_t)next_number(&fields, MAX_STEPS);
    for (size_t i = 0; fields.valid && i < plan->count; i++)
        read_step(&fields, &plan->steps[i]);
    plan->input = input ? (struct bytes){fields.at, input} : payload;
    return fields.valid && plan->count > 0 && (size_t)(fields.end - fields.at) == input;
}

/* ---- reporting ---- */

static const char *const RESULTS[] = {"not-run", "skipped", "exited", "signaled", "timed-out", "no-program", "no-folder"};

static void add_field(struct text *text, uint64_t number)
{
    add(text, " ");
    add_number(text, number, 10, 1);
}

static void add_result(struct text *text, const struct step *step)
{
    add(text, RESULTS[step->result]);
    add_field(text, (uint64_t)step->value);
    add_field(text, (uint64_t)step->took);
    for (int i = 0; i < 2; i++) {
        add_field(text, step->captures[i].first_size);
        add_field(text, step->captures[i].last_size);
        add_field(text, step->captures[i].skipped_lines);
    }
    add(text, "\n");
}

static size_t report_size(const struct plan *plan, struct bytes decision, struct bytes payload)
{
    size_t size = 256 + decision.size + payload.size;
    for (size_t i = 0; i < plan->count; i++)
        for (int j = 0; j < 2; j++)
            size += 256 + plan->steps[i].captures[j].first_size + plan->steps[i].captures[j].last_size;
    return size;
}

/* Return the results, their output, the decision and the payload: any daemon can settle them. Empty without memory. */
static struct bytes report(const struct plan *plan, struct bytes decision, struct bytes payload)
{
    size_t room = report_size(plan, decision, payload);
    char *at = map_memory(room);
    if (!at)
        return (struct bytes){0};
    struct text text = text_in(at, room);
    add(&text, plan->cancelled ? "1 cancelled" : "1 done");
    add_field(&text, plan->count);
    add_field(&text, decision.size);
    add_field(&text, payload.size);
    add(&text, "\n");
    for (size_t i = 0; i < plan->count; i++)
        add_result(&text, &plan->steps[i]);
    for (size_t i = 0; i < plan->count; i++)
        for (int j = 0; j < 2; j++)
            text.size += kept_bytes(&plan->steps[i].captures[j], text.at + text.size);
    add_bytes(&text, decision.at, decision.size);
    add_bytes(&text, payload.at, payload.size);
    return (struct bytes){text.at, text.size};
}

/* Return only if no step was begun: then Python carries out the whole plan. */
void carry_out(struct call *call, const struct answer *planned, struct bytes body)
{
    static struct plan plan;
    struct bytes steps = {body.at, planned->steps_size};
    struct bytes decision = {body.at + planned->steps_size, body.size - planned->steps_size};
    struct answer answer = {0};
    struct bytes got;
    if (planned->ack[0])
        fcntl(call->daemon, F_SETFD, FD_CLOEXEC);
    if (!read_plan(steps, call->payload, &plan) || !run_steps(&plan, call->id))
        return;
    int first = call->daemon;
    call->report = report(&plan, decision, call->payload);
    bool answered = call->report.size && ask_daemon(connect_daemon(), call, &answer, &got);
    int last = call->daemon;
    call->daemon = first;
    if (!answered || answer.status != 200)
        settle_locally(call, decision, planned->ack);
    if (answer.ack[0])
        call->daemon = last;
    else /* what the plan shows is printed with this answer */
        memcpy(answer.ack, planned->ack, sizeof answer.ack);
    print_answer(call, &answer, got.at + answer.head);
}
