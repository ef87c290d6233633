from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from toy_task import LONG, Toy, toy_model

from regard.layers.dropout import Dropout
from regard.training.crew import MOST, Crew, add_gradients, deal, fill_gradients, gather, plain_gather, shares, twin
from regard.training.loop import train
from regard.training.options import TrainingOptions


def gradients(model):
    return [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_shares_of_a_batch_add_up_to_the_batch(size):
    model, task = toy_model(dropout=0.0), Toy(rows=7)
    plan = task.batches(0)[0]
    whole = task.loss(model, task.collate(plan, 0))
    whole.total.backward()
    expected = gradients(model)
    model.zero_grad()
    with Crew(model, task, size) as crew:
        found = crew.backward(plan, 0)
        norm = crew.gather()
    assert norm == pytest.approx(float(nn.utils.get_total_norm(expected)))
    torch.testing.assert_close(found.total, whole.total.detach())
    assert found.units == whole.units
    torch.testing.assert_close(gradients(model), expected)


@pytest.mark.parametrize("size", [1, 3])
def test_numbers_that_are_nearly_nothing_are_nothing_to_every_member(size):
    def product(_):
        return float(torch.tensor([1e-30]) * torch.tensor([1e-10]))

    assert product(0) == pytest.approx(1e-40, rel=1e-3)
    with Crew(toy_model(), Toy(), size) as crew:
        assert crew.map(product, range(size)) == [0.0] * size
    assert product(0) == pytest.approx(1e-40, rel=1e-3)


def test_a_batch_with_fewer_rows_than_shares_leaves_some_idle():
    model, task = toy_model(dropout=0.0), Toy()
    with Crew(model, task, 3) as crew:
        loss = crew.backward([5], 0)
        crew.gather()
    assert loss.units == 1
    assert all(p.grad is not None for p in model.parameters())


def test_parameters_are_dealt_by_size_and_each_goes_to_one_hand():
    parameters = [nn.Parameter(torch.zeros(size)) for size in (1, 6, 1, 5, 2, 1)]
    assert deal(parameters, 2) == [[0, 1, 2], [3, 4, 5]]  # 6 + 1 + 1 and 5 + 2 + 1
    assert deal(parameters[:1], 2) == [[0], []]


def test_a_twin_follows_the_weights_and_keeps_its_own_gradients():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight  # tied
    other = twin(model, torch.Generator())
    assert other[0].weight is other[1].weight
    with torch.no_grad():
        model[0].weight.fill_(2.0)
    assert (other[1].weight == 2.0).all()
    other(torch.ones(1, 3)).sum().backward()
    assert model[0].weight.grad is None


def test_no_two_shares_drop_the_same_values():
    crew = Crew(nn.Sequential(Dropout(0.5)), Toy(), 3)
    with crew:
        crew.seed("1/1")
        first, second, third = (member.train()(torch.ones(1000)) for member in crew.models)
        crew.seed("1/1")
        again = [member(torch.ones(1000)) for member in crew.models]
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)
    for before, after in zip((first, second, third), again, strict=True):
        assert torch.equal(before, after)


def test_a_run_in_shares_repeats_itself_to_the_bit(tmp_path):
    def trained(name):
        model = toy_model()
        for _ in train(model, Toy(), LONG.model_copy(update={"shares": 3}), folder=tmp_path / name, width=8):
            pass
        return model.state_dict()

    first, second = trained("a"), trained("b")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_gradient_of_lookups_alone_becomes_dense():
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([3, 1, 3])).sum().backward()
    fill_gradients([table.weight, nn.Parameter(torch.zeros(1))])
    assert table.weight.grad.tolist() == [[0, 0], [1, 1], [0, 0], [2, 2]]


def test_a_gradient_that_only_one_has_is_kept():
    p, q = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    q.grad = torch.tensor([1.0, 2.0])
    assert add_gradients([p], [q]) == 5.0
    assert p.grad is not None
    assert p.grad.tolist() == [1.0, 2.0]
    assert q.grad is None
    assert add_gradients([p], [q]) == add_gradients([p], [None]) == 5.0
    assert p.grad.tolist() == [1.0, 2.0]


def test_sums_without_c_are_the_same():
    def gradients():
        return [torch.tensor([1.0, 2.0]), torch.tensor([3.0])], [torch.tensor([4.0, -2.0]), None]

    ours, theirs = gradients(), gradients()
    assert plain_gather(*ours) == 34.0
    assert gather(*theirs) in (34.0, None)
    assert [x.tolist() for x in ours[0]] == [[5.0, 0.0], [3.0]]


def test_batches_of_one_step_are_gathered_once():
    model, task = toy_model(dropout=0.0), Toy(rows=7)
    plans = task.batches(0)[:2]
    for plan in plans:
        task.loss(model, task.collate(plan, 0)).total.backward()
    expected = gradients(model)
    model.zero_grad()
    with Crew(model, task, 2) as crew:
        for plan in plans:
            crew.backward(plan, 0)
        crew.gather()
        assert all(p.grad is None for p in crew.models[1].parameters())
    torch.testing.assert_close(gradients(model), expected)


class Failing(Toy):
    """Does not like row 22."""

    def collate(self, plan: list[int], epoch: int) -> tuple[torch.Tensor, torch.Tensor]:
        if 22 in plan:
            raise ValueError("spoiled")
        return super().collate(plan, epoch)


def test_what_goes_wrong_in_a_share_is_raised():
    with Crew(toy_model(), Failing(), 2) as crew, pytest.raises(ValueError, match="spoiled"):
        crew.backward([0, 22, 1, 2], 0)


def test_shares_are_as_asked_else_as_many_as_threads_up_to_a_limit():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert [shares(TrainingOptions(shares=asked)) for asked in (None, 1, 7)] == [2, 1, 7]
        assert shares(TrainingOptions(threads=1)) == 1
        torch.set_num_threads(MOST + 3)
        assert shares(TrainingOptions()) == MOST
    finally:
        torch.set_num_threads(before)


def test_other_threads_keep_their_number_of_threads():
    before = torch.get_num_threads()
    with Crew(toy_model(), Toy(), 2) as crew:
        crew.backward([0, 1, 2], 0)
        assert torch.get_num_threads() == max(before // 2, 1)
        with crew.resting():
            assert torch.get_num_threads() == before
        assert torch.get_num_threads() == max(before // 2, 1)
    assert torch.get_num_threads() == before
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == before
